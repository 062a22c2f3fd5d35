# frozen_string_literal: true

require "test_helper"
require "json"
require "pando/admin/metrics"
require "support/promtool"
require "tempfile"
require "yaml"

# The examples for Prometheus, Grafana and Kubernetes, beside the table of metrics and the docs.
class MonitoringExamplesTest < Minitest::Test
  include Support::Promtool

  FOLDER = File.expand_path("../../../examples/monitoring", __dir__)
  KUBERNETES = File.expand_path("../../../examples/kubernetes", __dir__)
  DOCS = File.expand_path("../../../docs/alerts.md", __dir__)
  # Labels that Prometheus adds.
  OF_PROMETHEUS = %w[job instance le].freeze

  def read(name) = File.read(File.join(FOLDER, name), encoding: "UTF-8")
  def rules = YAML.safe_load(read("pando.rules.yml"))["groups"].flat_map { |group| group["rules"] }
  def alerts = rules.select { |rule| rule.key?("alert") }
  def documents(name) = YAML.load_stream(File.read(File.join(KUBERNETES, name)))

  def panels = JSON.parse(read("grafana.json"))["panels"].reject { |panel| panel["type"] == "row" }

  # @return [Hash{String => Array<String>}] the labels that each series may have
  def series
    Pando::Admin::Metrics.known.each_with_object({}) do |metric, all|
      names = metric.type == :histogram ? %w[_bucket _sum _count].map { |end_| metric.name + end_ } : [metric.name]
      names.each { |name| all[name] = metric.labels.map(&:to_s) + OF_PROMETHEUS }
    end
  end

  def expressions
    { "rules" => rules.map { |rule| rule["expr"] },
      "dashboard" => panels.flat_map { |panel| panel["targets"].map { |target| target["expr"] } },
      "adapter" => YAML.safe_load(documents("autoscale-hpa.yaml").last["data"]["config.yaml"])["externalRules"]
                       .flat_map { |rule| rule.values_at("seriesQuery", "metricsQuery") },
      "KEDA" => triggers.map { |trigger| trigger["metadata"]["query"] } }
  end

  def triggers = documents("autoscale-keda.yaml").first["spec"]["triggers"]

  def test_each_expression_uses_metrics_and_labels_of_the_table
    expressions.each do |place, all|
      refute_empty(all, place)
      all.each do |text|
        text.scan(/(?<![:\w])(pando_\w+)(?:\{([^}]*)\})?/) do |name, matchers|
          assert_includes(series, name, "#{place}: #{text}")
          labels = matchers.to_s.scan(/(\w+)(?:=~|!~|!=|=)"/).flatten
          assert_empty(labels - series.fetch(name), "#{place}: #{text}")
        end
      end
    end
  end

  def test_a_recorded_series_is_recorded
    recorded = rules.filter_map { |rule| rule["record"] }

    assert_empty(rules.flat_map { |rule| rule["expr"].scan(/\b\w+:\w+:\w+/) }.uniq - recorded)
  end

  def test_each_alert_has_a_section_and_says_what_to_do
    sections = File.read(DOCS, encoding: "UTF-8").scan(/^### (Pando\w+)$/).flatten

    assert_equal(alerts.map { |rule| rule["alert"] }.sort, sections.sort)
    alerts.each do |rule|
      assert_equal("docs/alerts.md##{rule["alert"].downcase}", rule["annotations"]["runbook"])
      %w[summary description].each { |key| assert_match(/\.\z/, rule["annotations"][key], rule["alert"]) }
      assert_includes(%w[warning critical], rule["labels"]["severity"])
    end
  end

  def test_each_alert_has_a_test
    tested = YAML.safe_load(read("pando.rules.test.yml"))["tests"].map { |one| one["name"] }

    assert_empty(alerts.map { |rule| rule["alert"] } - tested)
  end

  def test_promtool_checks_rules_dashboard_and_scalers
    need_promtool
    assert_promtool("check", "rules", "pando.rules.yml", chdir: FOLDER)
    assert_promtool("test", "rules", "pando.rules.test.yml", chdir: FOLDER)
    Tempfile.create(["expressions", ".yml"]) do |file|
      placeholders = /\$__rate_interval|,<<\.LabelMatchers>>/
      texts = expressions.values.flatten.map { |text| text.gsub(placeholders, "$__rate_interval" => "5m") }
      rules = texts.each_with_index.map { |text, number| { "record" => "example:#{number}", "expr" => text } }
      file.write(JSON.generate("groups" => [{ "name" => "examples", "rules" => rules }]))
      file.flush
      assert_promtool("check", "rules", file.path)
    end
  end

  def test_the_dashboard_can_be_imported
    ids = JSON.parse(read("grafana.json"))["panels"].map { |panel| panel["id"] }

    assert_equal(ids.uniq, ids)
    places = panels.map { |panel| panel["gridPos"].values_at("x", "y", "w", "h") }
    places.combination(2) { |one, other| refute(overlap?(one, other), "#{one} #{other}") }
    assert(places.all? { |x, _, width, _| x + width <= 24 })
  end

  def test_the_scalers_scale_the_deployment_of_the_example
    deployment = documents("pando.yaml").find { |one| one["kind"] == "Deployment" }["metadata"]["name"]
    scaler, adapter = documents("autoscale-hpa.yaml")
    named = YAML.safe_load(adapter["data"]["config.yaml"])["externalRules"].map { |rule| rule["name"]["as"] }

    assert_equal(["autoscaling/v2", "HorizontalPodAutoscaler"], scaler.values_at("apiVersion", "kind"))
    assert_equal(deployment, scaler["spec"]["scaleTargetRef"]["name"])
    assert_equal(named, scaler["spec"]["metrics"].map { |metric| metric["external"]["metric"]["name"] })
    assert_equal(deployment, documents("autoscale-keda.yaml").first["spec"]["scaleTargetRef"]["name"])
    assert(triggers.all? { |trigger| trigger["metadata"].values.all?(String) }, "KEDA takes strings only")
  end

  private

  def overlap?(one, other)
    x, y, width, height = one
    other_x, other_y, other_width, other_height = other
    x < other_x + other_width && other_x < x + width && y < other_y + other_height && other_y < y + height
  end
end
