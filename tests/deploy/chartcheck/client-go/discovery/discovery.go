// Package discovery stands in for that of Kubernetes: see the package rest.
package discovery

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A Client reaches no cluster.
type Client struct{}

// NewDiscoveryClientForConfig fails.
func NewDiscoveryClientForConfig(*rest.Config) (*Client, error) {
	return nil, errors.New("there is no cluster")
}

// ServerResourcesForGroupVersion fails.
func (*Client) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return nil, errors.New("there is no cluster")
}
