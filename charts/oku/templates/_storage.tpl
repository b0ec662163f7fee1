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
  storageClassName: {{ . }}
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
  claimName: {{ default (include "oku.name" .) .persistence.existingClaim }}
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
kept, so that an upgrade changes nothing; without a cluster (`helm template`) it is another each time.
*/}}
{{- define "oku.generated" -}}
{{- $found := default dict (lookup "v1" "Secret" .root.Release.Namespace (include "oku.name" .)) -}}
{{- $data := default dict (get $found "data") -}}
{{- default (randAlphaNum 40 | b64enc) (get $data .key) -}}
{{- end -}}
