{{/* The name of what belongs to this release. */}}
{{- define "graphmem.name" -}}
{{- if contains "graphmem" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-graphmem" (.Release.Name | trunc 40 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* The labels by which the pods of a component are found: a list of the root context and the component. */}}
{{- define "graphmem.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: graphmem
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* The labels of what belongs to a component. */}}
{{- define "graphmem.labels" -}}
{{- $root := index . 0 -}}
{{ include "graphmem.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end -}}
