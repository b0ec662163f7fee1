{{/*
Quantities as the programs read them (`oku_core.quantity`): a number and a unit, in small letters or capitals.
A duration without a unit is in seconds, a size in bytes. Each check gives what is wrong, empty if nothing.
*/}}

{{/* A duration within bounds: (dict "text" TEXT "least" SECONDS "most" SECONDS "between" TEXT). */}}
{{- define "oku.checkDuration" -}}
{{- if not (regexMatch (printf "^%s$" (include "oku.durationPattern" .)) .text) -}}
{{- printf "%s is not a duration such as 10s, 500ms or 2m" .text -}}
{{- else -}}
{{- $seconds := include "oku.seconds" .text | float64 -}}
{{- if or (lt $seconds .least) (gt $seconds .most) -}}
{{- printf "%s is not between %s" .text .between -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A size of a megabyte at least: TEXT. */}}
{{- define "oku.checkOutbox" -}}
{{- if not (regexMatch (printf "^%s$" (include "oku.sizePattern" .)) .) -}}
{{- printf "%s is not a size such as 256MB or 1GiB" . -}}
{{- else if lt (include "oku.bytes" . | float64) 1000000.0 -}}
{{- printf "%s is less than 1MB" . -}}
{{- end -}}
{{- end -}}

{{/*
A delay (`oku_core.spec.values.delay`): TEXT. That the mean of a log-normal is more than an hour although its median is
less, the delay server itself has to say.
*/}}
{{- define "oku.checkDelay" -}}
{{- $duration := include "oku.durationPattern" . -}}
{{- $pattern := printf "^(%[1]s( *\\.\\. *%[1]s)?|exp: *%[1]s|lognormal: *%[1]s *, *[0-9]+(\\.[0-9]+)?)$" $duration -}}
{{- if not (regexMatch $pattern .) -}}
{{- printf "%s is not a delay such as 20ms, 0..3s, 5ms..80ms, exp:50ms or lognormal:40ms,0.5" . -}}
{{- else -}}
{{- $sigma := regexFind ",.*" . | trimPrefix "," | trim | default "0" | float64 -}}
{{- $said := regexReplaceAll "^(exp|lognormal):|,.*" . "" | splitList ".." -}}
{{- $low := first $said | trim -}}
{{- $high := last $said | trim -}}
{{- if not (regexMatch "[a-zA-Zµ]$" $low) -}}
{{- $low = print $low (regexFind "[a-zA-Zµ]+$" $high) -}}
{{- end -}}
{{- if gt (include "oku.seconds" $high | float64) 3600.0 -}}
{{- printf "%s is not between 0s and 1h" . -}}
{{- else if gt (include "oku.seconds" $low | float64) (include "oku.seconds" $high | float64) -}}
{{- printf "%s begins with the longer of its bounds" . -}}
{{- else if gt $sigma 5.0 -}}
{{- printf "%s has a sigma of more than 5" . -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Ports from the first that are not privileged on: TEXT. */}}
{{- define "oku.checkPortRange" -}}
{{- $ports := splitList " " . -}}
{{- $first := first $ports | int -}}
{{- $last := last $ports | int -}}
{{- if or (lt $first 1024) (lt $last $first) (gt $last 65535) -}}
{{- printf "%s is not the first and the last of ports from 1024 to 65535" . -}}
{{- end -}}
{{- end -}}

{{- define "oku.numberPattern" -}}
\+?[0-9]+(_[0-9]+)*(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?
{{- end -}}

{{- define "oku.durationPattern" -}}
{{- include "oku.numberPattern" . }} *([uUµmM]?[sS]|[mMhHdD])?
{{- end -}}

{{- define "oku.sizePattern" -}}
{{- include "oku.numberPattern" . }} *([bB]|[kKmMgG]([iI]?[bB])?)?
{{- end -}}

{{/* The seconds of a duration: TEXT. */}}
{{- define "oku.seconds" -}}
{{- include "oku.quantity" (dict "text" . "units" (dict "us" 0.000001 "µs" 0.000001 "ms" 0.001 "m" 60 "h" 3600 "d" 86400)) -}}
{{- end -}}

{{/* The bytes of a size: TEXT. */}}
{{- define "oku.bytes" -}}
{{- $kilo := dict "k" 1000 "kb" 1000 "kib" 1024 -}}
{{- $mega := dict "m" 1000000 "mb" 1000000 "mib" 1048576 -}}
{{- $giga := dict "g" 1000000000 "gb" 1000000000 "gib" 1073741824 -}}
{{- include "oku.quantity" (dict "text" . "units" (merge $kilo $mega $giga)) -}}
{{- end -}}

{{/* What Kubernetes takes as a quantity (`resource.Quantity` of its API): capitals and small letters differ. */}}
{{- define "oku.kubeQuantityPattern" -}}
\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?
{{- end -}}

{{/* Refuses anything else: (dict "path" TEXT "quantity" TEXT); empty and null are none. */}}
{{- define "oku.checkQuantity" -}}
{{- $text := toString (default "" .quantity) -}}
{{- if and $text (not (regexMatch (printf "^%s$" (include "oku.kubeQuantityPattern" .)) $text)) -}}
{{- fail (printf "%s: %s is not a quantity such as 512Mi or 1Gi" .path $text) -}}
{{- end -}}
{{- end -}}

{{/* The bytes of such a quantity: TEXT. */}}
{{- define "oku.kubeBytes" -}}
{{- $small := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 -}}
{{- $decimal := dict "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $binary := dict "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- $unit := regexFind "[a-zA-Z]+$" . -}}
{{- mulf (trimSuffix $unit . | trimPrefix "+" | float64) (get (merge $small $decimal $binary) $unit | default 1.0) -}}
{{- end -}}

{{/* Whether a size of ours is more than a quantity of Kubernetes, empty if not: (dict "size" TEXT "limit" TEXT). */}}
{{- define "oku.exceeds" -}}
{{- if gt (include "oku.bytes" .size | float64) (include "oku.kubeBytes" (toString .limit) | float64) -}}
true
{{- end -}}
{{- end -}}

{{/* A number times its unit, 1 for one that is not listed: (dict "text" TEXT "units" DICT). */}}
{{- define "oku.quantity" -}}
{{- $unit := regexFind "[a-zA-Zµ]+$" .text -}}
{{- $number := trimSuffix $unit .text | trim | trimPrefix "+" | replace "_" "" -}}
{{- mulf (float64 $number) (get .units (lower $unit) | default 1) -}}
{{- end -}}
