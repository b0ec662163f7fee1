{{/*
What all names begin with: the release's name, which no other release of the namespace has. One that is no
DNS label (a dot, a digit in front) is made one, with a hash of what it was.
*/}}
{{- define "oku.base" -}}
{{- $name := default .Release.Name .Values.fullnameOverride -}}
{{- if regexMatch "^[a-z][a-z0-9-]*$" $name -}}
{{- $name -}}
{{- else -}}
{{- printf "oku-%s-%s" (replace "." "-" $name) (sha256sum $name | trunc 6) -}}
{{- end -}}
{{- end -}}

{{/*
The name of an object: (dict "root" $ "suffix" TEXT). The suffix is always kept; what is too long before it is
cut, and gets a hash, so that no two become the same. 52 characters, for a StatefulSet makes labels of its
name and eleven more. What goes to another namespace ("namespace" NAME) has that of the release in its name.
*/}}
{{- define "oku.name" -}}
{{- $base := include "oku.base" .root -}}
{{- $room := int (sub 51 (len .suffix)) -}}
{{- if gt (len $base) $room -}}
{{- $base = printf "%s-%s" (trunc (int (sub $room 7)) $base | trimSuffix "-") (sha256sum $base | trunc 6) -}}
{{- end -}}
{{- $home := .root.Release.Namespace -}}
{{- printf "%s-%s" $base .suffix -}}
{{- if ne (default $home .namespace) $home -}}
{{- printf ".%s" $home -}}
{{- end -}}
{{- end -}}

{{/* The labels that select a component: (dict "root" $ "component" NAME). They never change. */}}
{{- define "oku.selectorLabels" -}}
app.kubernetes.io/name: oku
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* The components of the release that have pods for good, as a list. */}}
{{- define "oku.components" -}}
- coordinator
- workers
{{- range tuple "servers" "valkey" "loki" "grafana" }}
{{- if (get $.Values .).enabled }}
- {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
The metadata of an object: (dict "root" $ "component" NAME "suffix" TEXT "annotations" DICT "labels" DICT "namespace"
NAME "as" NAME). The last is its name if the values say one.
*/}}
{{- define "oku.metadata" -}}
{{- $own := include "oku.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" (toString .root.Chart.AppVersion) -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "oku" -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- $annotations := merge (dict) (default dict .annotations) (default dict .root.Values.extraAnnotations) -}}
name: {{ default (include "oku.name" .) .as | toYaml }}
namespace: {{ default .root.Release.Namespace .namespace | toYaml }}
labels:
  {{- merge $own (default dict .labels) (default dict .root.Values.extraLabels) | toYaml | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
