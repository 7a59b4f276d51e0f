// Package dynamic stands in for that of Kubernetes: see the package rest.
package dynamic

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

type content interface{ UnstructuredContent() map[string]any }

// A ResourceInterface would read resources.
type ResourceInterface interface {
	Get(context.Context, string, metav1.GetOptions, ...string) (content, error)
	List(context.Context, metav1.ListOptions) (content, error)
}

// A NamespaceableResourceInterface would read resources of a namespace, too.
type NamespaceableResourceInterface interface {
	ResourceInterface
	Namespace(string) ResourceInterface
}

// A Client reaches no cluster.
type Client struct{}

// NewForConfig fails.
func NewForConfig(*rest.Config) (*Client, error) { return nil, errors.New("there is no cluster") }

// Resource is never called.
func (*Client) Resource(schema.GroupVersionResource) NamespaceableResourceInterface { return nil }
