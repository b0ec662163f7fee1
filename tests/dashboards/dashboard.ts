// What Grafana's types say of a classic dashboard, put together for the kinds of panels that Oku uses.
//
// Grafana's own types leave the options of a panel open; here each kind of panel has those of its plugin, each
// query is one of Loki, and a name that the plugin does not know is an error.
import type {
  Dashboard,
  FieldConfig,
  GraphFieldConfig,
  Panel,
  RowPanel,
  TableFieldOptions,
  VariableModel,
} from "@grafana/schema";
import type {
  FieldConfig as BarChartFields,
  Options as BarChartOptions,
} from "@grafana/schema/dist/esm/raw/composable/barchart/panelcfg/x/BarChartPanelCfg_types.gen";
import type { Options as BarGaugeOptions } from "@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen";
import type { Options as GaugeOptions } from "@grafana/schema/dist/esm/raw/composable/gauge/panelcfg/x/GaugePanelCfg_types.gen";
import type { Options as HeatmapOptions } from "@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen";
import type { Options as LogsOptions } from "@grafana/schema/dist/esm/raw/composable/logs/panelcfg/x/LogsPanelCfg_types.gen";
import type { Options as StatOptions } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type { Options as TableOptions } from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type { Options as LinesOptions } from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

/** JSON holds the values of enums, not their names. */
type Value<E extends string | number> = E extends string
  ? `${E}`
  : `${E}` extends `${infer N extends number}`
    ? N
    : never;

/** A type as JSON has it: with the values of enums. */
type Plain<T> = T extends string | number
  ? Value<T>
  : T extends boolean | null | undefined
    ? T
    : T extends ReadonlyArray<infer U>
      ? Plain<U>[]
      : T extends object
        ? { [K in keyof T]: Plain<T[K]> }
        : T;

/** As `Plain`, and all of it may be missing: Grafana fills in what it takes as given. */
type Part<T> = T extends string | number
  ? Value<T>
  : T extends boolean | null | undefined
    ? T
    : T extends ReadonlyArray<infer U>
      ? Part<U>[]
      : T extends object
        ? { [K in keyof T]?: Part<T[K]> }
        : T;

interface LokiSource {
  type: "loki";
  uid: "${datasource}";
}

/** Loki's queries are typed in 10 and 11 only; these fields are those that all majors read. */
interface LokiQuery {
  refId: string;
  datasource: LokiSource;
  editorMode: "code";
  expr: string;
  queryType: "range" | "instant";
  legendFormat?: string;
  maxLines?: number;
}

interface KindOfPanel<Kind extends string, Options, Custom = never>
  extends Pick<
    Plain<Panel>,
    "id" | "title" | "description" | "gridPos" | "interval" | "maxDataPoints" | "transformations"
  > {
  type: Kind;
  datasource: LokiSource;
  targets: LokiQuery[];
  options: Part<Options>;
  fieldConfig: {
    defaults: Omit<Part<FieldConfig>, "custom" | "links"> & { custom?: Part<Custom> };
    overrides: { matcher: { id: string; options: string }; properties: { id: string; value: unknown }[] }[];
  };
}

type OkuPanel =
  | KindOfPanel<"barchart", BarChartOptions, BarChartFields>
  | KindOfPanel<"bargauge", BarGaugeOptions>
  | KindOfPanel<"gauge", GaugeOptions>
  | KindOfPanel<"heatmap", HeatmapOptions>
  | KindOfPanel<"logs", LogsOptions>
  | KindOfPanel<"stat", StatOptions>
  | KindOfPanel<"table", TableOptions, TableFieldOptions>
  | KindOfPanel<"timeseries", LinesOptions, GraphFieldConfig>
  | Plain<RowPanel>;

/** The fields of an annotation that the Loki data source reads; Grafana's types do not have them. */
interface LokiAnnotation {
  name: string;
  datasource: LokiSource;
  enable: boolean;
  hide: boolean;
  iconColor: string;
  expr: string;
  titleFormat: string;
  textFormat: string;
  tagKeys: string;
  maxLines: number;
}

// `description` of variables and the default of a choice that nobody made are older than their types.
type OkuVariable = Omit<Plain<VariableModel>, "current" | "options"> & {
  definition?: string;
  current: Partial<Plain<NonNullable<VariableModel["current"]>>>;
  options: Partial<Plain<NonNullable<VariableModel["current"]>>>[];
};

export type OkuDashboard = Omit<Plain<Dashboard>, "panels" | "annotations" | "templating"> & {
  panels: OkuPanel[];
  annotations: { list: LokiAnnotation[] };
  templating: { list: OkuVariable[] };
};
