{{/* What a component's pods have: `pods`, and what its own `pod` says: (dict "root" $ "pod" VALUES). */}}
{{- define "oku.podValues" -}}
{{- mergeOverwrite (deepCopy .root.Values.pods) (deepCopy .pod) | toYaml -}}
{{- end -}}

{{/* The metadata of a pod: (dict "root" $ "component" NAME "pod" VALUES "annotations" DICT "labels" DICT). */}}
{{- define "oku.podMetadata" -}}
{{- $pod := include "oku.podValues" . | fromYaml -}}
{{- $own := include "oku.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" (toString .root.Chart.AppVersion) -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "oku" -}}
{{- $annotations := merge (dict) (default dict .annotations) $pod.annotations .root.Values.extraAnnotations -}}
labels:
  {{- merge $own (default dict .labels) $pod.labels .root.Values.extraLabels | toYaml | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
What every pod spec has: (dict "root" $ "pod" VALUES "uid" NUMBER "account" NAME). No token of a service
account unless one is named; no variables of Services, which would be taken for Oku's own (OKU_PORT).
*/}}
{{- define "oku.podSpec" -}}
{{- $pod := include "oku.podValues" . | fromYaml -}}
automountServiceAccountToken: {{ not (empty .account) }}
# Always said: a name that is no longer said stays (the old field `serviceAccount` keeps it).
serviceAccountName: {{ default "default" .account }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .uid }}
  runAsGroup: {{ .uid }}
  fsGroup: {{ .uid }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
  {{- with .sysctls }}
  sysctls:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $pod.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What every container has: (dict "root" $ "image" VALUES "resources" VALUES). */}}
{{- define "oku.containerSpec" -}}
image: {{ include "oku.image" . }}
imagePullPolicy: {{ .image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- with .resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The name of an image: (dict "root" $ "image" VALUES). */}}
{{- define "oku.image" -}}
{{- $registry := default .image.registry .root.Values.imageRegistry -}}
{{- $name := ternary .image.repository (printf "%s/%s" $registry .image.repository) (empty $registry) -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest | quote -}}
{{- else -}}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) | quote -}}
{{- end -}}
{{- end -}}

{{/* The default repository at a public registry, where its name is not ours; else empty. */}}
{{- define "oku.unownedImage" -}}
{{- $image := include "oku.image" (dict "root" . "image" .Values.image) | trimAll "\"" -}}
{{- if regexMatch "^(?i)((.+[.])?(docker[.](io|com)|ghcr[.]io|quay[.]io|gcr[.]io|public[.]ecr[.]aws|registry[.]gitlab[.]com)/)?oku/oku[:@]" $image -}}
{{- printf "image: %s would come from a public registry, where this name is not ours: set image.registry, or imageRegistry where that is set, to the registry to which you pushed the image, or image.repository to a name of yours there" $image -}}
{{- end -}}
{{- end -}}

{{/* The extra variables of a component, as items of a list: (dict "root" $ "pod" VALUES). */}}
{{- define "oku.extraEnv" -}}
{{- with (include "oku.podValues" . | fromYaml).extraEnv -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* Which files specs may name: the coordinator refuses all others, and so do workers. */}}
{{- define "oku.filesEnv" -}}
{{- with .Values.workers.filesDirs -}}
- name: OKU_FILES_DIR
  value: {{ join ":" . | quote }}
{{- end -}}
{{- end -}}

{{/* The extra volumes of a component, as extra variables. */}}
{{- define "oku.extraVolumes" -}}
{{- with (include "oku.podValues" . | fromYaml).extraVolumes -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* The same of what its container mounts. */}}
{{- define "oku.extraVolumeMounts" -}}
{{- with (include "oku.podValues" . | fromYaml).extraVolumeMounts -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}
