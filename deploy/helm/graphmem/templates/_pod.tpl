{{/* The name of the file of a secret. */}}
{{- define "graphmem.secretFile" -}}
{{- . | trimPrefix "GRAPHMEM_" | lower -}}
{{- end -}}

{{/* The environment of a process: settings, the paths of secrets, and further variables. Numbers are written as JSON, because a
template writes a large one as a power of ten. */}}
{{- define "graphmem.environment" -}}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
{{- end }}
{{- range $name, $_ := .Values.secrets }}
- name: {{ $name }}_FILE
  value: /run/secrets/graphmem/{{ include "graphmem.secretFile" $name }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The pods of a component: a list of the root context, the component, its values, its port and its arguments. */}}
{{- define "graphmem.podTemplate" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index . 2 -}}
{{- $port := index . 3 -}}
{{- $arguments := index . 4 -}}
metadata:
  labels:
    {{- include "graphmem.labels" (list $root $component) | nindent 4 }}
spec:
  serviceAccountName: {{ include "graphmem.name" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false # its variables, such as GRAPHMEM_PORT, would be taken for settings
  terminationGracePeriodSeconds: 60
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "graphmem.selector" (list $root $component) | nindent 10 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ $component }}
      image: {{ printf "%s:%s" $root.Values.image.repository ($root.Values.image.tag | default $root.Chart.AppVersion) | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      # Not the entry point of the image, which puts secrets from files into the environment.
      command: [graphmem]
      args: {{ toJson $arguments }}
      ports:
        - name: http
          containerPort: {{ $port }}
      env:
        {{- include "graphmem.environment" $root | trim | nindent 8 }}
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: {{ div (add $root.Values.startupSeconds 4) 5 }}
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 2
      lifecycle:
        preStop: # the addresses of a pod are in use for some seconds after its end has begun
          exec: {command: [sleep, "5"]}
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: temporary, mountPath: /tmp}
        - {name: secrets, mountPath: /run/secrets/graphmem, readOnly: true}
        {{- with $root.Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: data
      emptyDir: {sizeLimit: {{ $root.Values.dataSize }}}
    - name: temporary
      emptyDir: {sizeLimit: {{ $root.Values.temporarySize }}}
    - name: secrets
      projected:
        defaultMode: 0440
        sources:
          {{- range $name, $secret := $root.Values.secrets }}
          - secret:
              name: {{ $secret.name }}
              items:
                - {key: {{ $secret.key | quote }}, path: {{ include "graphmem.secretFile" $name }}}
          {{- end }}
    {{- with $root.Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
