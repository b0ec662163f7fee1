{{/* A claim: (dict "root" $ "component" NAME "suffix" TEXT "persistence" VALUES "keep" BOOL). */}}
{{- define "oku.claim" -}}
{{- if and .persistence.enabled (not .persistence.existingClaim) -}}
{{- $_ := set . "annotations" (ternary (dict "helm.sh/resource-policy" "keep") (dict) .keep) -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  {{- include "oku.metadata" . | nindent 2 }}
spec:
  accessModes: [{{ .persistence.accessMode }}]
  {{- with .persistence.storageClass }}
  storageClassName: {{ toYaml . }}
  {{- end }}
  resources:
    requests:
      storage: {{ .persistence.size }}
{{- end -}}
{{- end -}}

{{/* Where a pod keeps its data: (dict "root" $ "suffix" TEXT "persistence" VALUES). */}}
{{- define "oku.dataVolume" -}}
{{- if .persistence.enabled -}}
persistentVolumeClaim:
  claimName: {{ default (include "oku.name" .) .persistence.existingClaim | toYaml }}
{{- else -}}
emptyDir:
  sizeLimit: {{ .persistence.size }}
{{- end -}}
{{- end -}}

{{/* The emptyDir of a component with this name of its volume: (dict "root" $ "component" NAME "pod" VALUES "volume" NAME). */}}
{{- define "oku.emptyDir" -}}
{{- with get (default dict (include "oku.podValues" . | fromYaml).sizeLimits) .volume -}}
emptyDir:
  sizeLimit: {{ . }}
{{- else -}}
emptyDir: {}
{{- end -}}
{{- end -}}

{{/*
A value of a generated Secret, as base64: (dict "root" $ "suffix" TEXT "key" TEXT). What the cluster has is
kept, so that an upgrade changes nothing; without a cluster (`helm template`) it is another each time. It is
kept among the values until the end of the rendering, because the Secret is rendered more than once
(`oku.checksums`).
*/}}
{{- define "oku.generated" -}}
{{- $secret := include "oku.name" . -}}
{{- $known := default dict .root.Values.generated -}}
{{- $name := printf "%s/%s" $secret .key -}}
{{- if not (hasKey $known $name) -}}
{{- $found := default dict (lookup "v1" "Secret" .root.Release.Namespace $secret) -}}
{{- $data := default dict (get $found "data") -}}
{{- $_ := set $known $name (default (randAlphaNum 40 | b64enc) (get $data .key)) -}}
{{- $_ := set .root.Values "generated" $known -}}
{{- end -}}
{{- get $known $name -}}
{{- end -}}

{{/*
The annotations by which pods are restarted when what they read has changed: (dict "root" $ "config" LIST
"secrets" LIST), the templates of the ConfigMaps and Secrets that they read. Only data counts: the labels of
these objects change with the version of the chart. An object that the chart does not make gives none.
*/}}
{{- define "oku.checksums" -}}
{{- $root := .root -}}
{{- range $kind, $templates := omit . "root" -}}
{{- $data := dict -}}
{{- range $templates -}}
{{- range splitList "\n---\n" (include (printf "%s/%s" $root.Template.BasePath .) $root) -}}
{{- with fromYaml . -}}
{{- $_ := set $data .metadata.name .data -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $data }}
checksum/{{ $kind }}: {{ toJson . | sha256sum }}
{{- end -}}
{{- end -}}
{{- end -}}
