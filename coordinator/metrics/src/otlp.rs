//! CORE: the figures as OpenTelemetry's protocol has them (OTLP 1, `ExportMetricsServiceRequest`).
//!
//! What has a name in OpenTelemetry's conventions has that one, with its unit; what has none keeps its own, without
//! `_total`, which a collector puts back for Prometheus.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prometheus::proto::{Metric as Counted, MetricFamily, MetricType};

/// Figures with a name and a unit in OpenTelemetry's conventions.
const NAMES: [(&str, &str, &str); 4] = [
    ("mcp_server_operation_duration_seconds", "mcp.server.operation.duration", "s"),
    ("process_cpu_seconds_total", "process.cpu.time", "s"),
    ("process_open_fds", "process.unix.file_descriptor.count", "{file_descriptor}"),
    ("process_resident_memory_bytes", "process.memory.usage", "By"),
];

/// Labels with a name there.
const LABELS: [(&str, &str); 3] = [
    ("error_type", "error.type"),
    ("gen_ai_tool_name", "gen_ai.tool.name"),
    ("mcp_method_name", "mcp.method.name"),
];

/// What is said of the coordinator once, and not as a figure.
const OF_RESOURCE: [&str; 2] = ["baton_build_info", "process_start_time_seconds"];

/// Which coordinator counted, and since when.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Its own ID, another one after each start.
    pub(crate) instance: String,
    /// In nanoseconds since 1970.
    pub(crate) since: u64,
}

/// The request that carries these figures; `now` in nanoseconds since 1970.
pub(crate) fn request(families: &[MetricFamily], source: &Source, now: u64) -> ExportMetricsServiceRequest {
    let span = Span { since: source.since, now };
    let counted = families.iter().filter(|family| !OF_RESOURCE.contains(&family.name()));
    let attributes = [
        ("service.name", "baton"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", source.instance.as_str()),
    ];
    let resource = Resource {
        attributes: attributes.map(|(key, value)| attribute(key, value)).to_vec(),
        ..Resource::default()
    };
    let scope =
        InstrumentationScope { name: env!("CARGO_PKG_NAME").to_owned(), ..InstrumentationScope::default() };
    let metrics = counted.filter_map(|family| metric(family, span)).collect();
    let of_scope = ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() };
    let all = ResourceMetrics {
        resource: Some(resource),
        scope_metrics: vec![of_scope],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest { resource_metrics: vec![all] }
}

/// What a figure was counted in.
#[derive(Clone, Copy)]
struct Span {
    since: u64,
    now: u64,
}

fn metric(family: &MetricFamily, span: Span) -> Option<Metric> {
    let all = family.get_metric().iter();
    let data = match family.get_field_type() {
        MetricType::COUNTER => Data::Sum(Sum {
            data_points: all.map(|one| number(one, one.get_counter().get_value(), span)).collect(),
            aggregation_temporality: AggregationTemporality::Cumulative.into(),
            is_monotonic: true,
        }),
        MetricType::GAUGE => Data::Gauge(Gauge {
            data_points: all.map(|one| number(one, one.get_gauge().get_value(), span)).collect(),
        }),
        MetricType::HISTOGRAM => Data::Histogram(Histogram {
            data_points: all.map(|one| histogram(one, span)).collect(),
            aggregation_temporality: AggregationTemporality::Cumulative.into(),
        }),
        MetricType::SUMMARY | MetricType::UNTYPED => return None,
    };
    let (name, unit) = name(family.name());
    let description = family.help().to_owned();
    Some(Metric { name, description, unit, data: Some(data), ..Metric::default() })
}

/// Its name there, and its unit.
fn name(own: &str) -> (String, String) {
    if let Some((_, name, unit)) = NAMES.iter().find(|(known, ..)| *known == own) {
        return ((*name).to_owned(), (*unit).to_owned());
    }
    let name = own.strip_suffix("_total").unwrap_or(own);
    (name.replacen("baton_", "baton.", 1), String::new())
}

fn number(counted: &Counted, value: f64, Span { since, now }: Span) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(counted),
        start_time_unix_nano: since,
        time_unix_nano: now,
        value: Some(number_data_point::Value::AsDouble(value)),
        ..NumberDataPoint::default()
    }
}

fn histogram(counted: &Counted, Span { since, now }: Span) -> HistogramDataPoint {
    let of_prometheus = counted.get_histogram();
    let count = of_prometheus.get_sample_count();
    // There a bucket holds all that is below; here what is in it, and the last one what is above all bounds.
    let bounded = of_prometheus.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite());
    let (explicit_bounds, cumulative): (Vec<f64>, Vec<u64>) =
        bounded.map(|bucket| (bucket.upper_bound(), bucket.cumulative_count())).unzip();
    let mut below = 0;
    let alone = |up_to: u64| up_to.saturating_sub(std::mem::replace(&mut below, up_to));
    let bucket_counts = cumulative.into_iter().chain([count]).map(alone).collect();
    HistogramDataPoint {
        attributes: attributes(counted),
        start_time_unix_nano: since,
        time_unix_nano: now,
        count,
        sum: Some(of_prometheus.get_sample_sum()),
        explicit_bounds,
        bucket_counts,
        ..HistogramDataPoint::default()
    }
}

/// Labels that say something.
fn attributes(counted: &Counted) -> Vec<KeyValue> {
    let labels = counted.get_label().iter().filter(|label| !label.value().is_empty());
    let known = |own| LABELS.iter().find(|(known, _)| *known == own).map_or(own, |(_, name)| *name);
    labels.map(|label| attribute(known(label.name()), label.value())).collect()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(Value::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

#[cfg(test)]
mod tests {
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry};

    use super::*;

    fn metrics(registry: &Registry) -> Vec<Metric> {
        let source = Source { instance: "i".to_owned(), since: 5 };
        let mut request = request(&registry.gather(), &source, 9);
        request.resource_metrics.remove(0).scope_metrics.remove(0).metrics
    }

    #[test]
    fn what_conventions_name_has_their_name_and_the_rest_its_own() {
        for (own, named) in [
            ("process_cpu_seconds_total", ("process.cpu.time", "s")),
            ("baton_terms_total", ("baton.terms", "")),
            ("baton_debug_adapters_died_total", ("baton.debug_adapters_died", "")),
            ("baton_windows", ("baton.windows", "")),
        ] {
            assert_eq!(name(own), (named.0.to_owned(), named.1.to_owned()), "{own}");
        }
    }

    #[test]
    fn a_bucket_holds_what_is_in_it_alone() {
        let registry = Registry::new();
        let opts = HistogramOpts::new("mcp_server_operation_duration_seconds", "h").buckets(vec![0.1, 1.0]);
        let durations = HistogramVec::new(opts, &["error_type", "gen_ai_tool_name"]).unwrap();
        registry.register(Box::new(durations.clone())).unwrap();
        for seconds in [0.05, 0.1, 0.5, 2.0, 3.0, 4.0] {
            durations.with_label_values(&["", "debug"]).observe(seconds);
        }
        let metrics = metrics(&registry);
        assert_eq!(
            (metrics[0].name.as_str(), metrics[0].unit.as_str()),
            ("mcp.server.operation.duration", "s")
        );
        let Some(Data::Histogram(Histogram { data_points, .. })) = &metrics[0].data else {
            panic!("{metrics:?}")
        };
        let point = &data_points[0];
        assert_eq!((point.count, &point.bucket_counts[..]), (6, &[2, 1, 3][..]));
        assert_eq!(point.explicit_bounds, [0.1, 1.0]);
        assert_eq!(point.attributes, [attribute("gen_ai.tool.name", "debug")], "no error is no attribute");
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (5, 9));
    }

    #[test]
    fn counters_grow_and_gauges_do_not() {
        let registry = Registry::new();
        let terms = IntCounterVec::new(Opts::new("baton_terms_total", "h"), &["rule"]).unwrap();
        let (windows, build) =
            (IntGauge::new("baton_windows", "h").unwrap(), IntGauge::new("baton_build_info", "h").unwrap());
        for metric in [&windows, &build] {
            registry.register(Box::new(metric.clone())).unwrap();
        }
        registry.register(Box::new(terms.clone())).unwrap();
        terms.with_label_values(&["R4"]).inc_by(2);
        windows.set(7);
        let metrics = metrics(&registry);
        let [Metric { data: Some(Data::Sum(sum)), .. }, Metric { data: Some(Data::Gauge(gauge)), .. }] =
            metrics.as_slice()
        else {
            panic!("{metrics:?}")
        };
        assert!(sum.is_monotonic && sum.data_points[0].attributes == [attribute("rule", "R4")]);
        let value = |value: f64| Some(number_data_point::Value::AsDouble(value));
        assert_eq!((sum.data_points[0].value, gauge.data_points[0].value), (value(2.0), value(7.0)));
    }
}
