# frozen_string_literal: true

module Pando
  # Sends Pando's metrics (docs/metrics.md) to other systems, from a service, which has the application and its gems:
  #
  #     service(:metrics) { |service| Pando::Exporters::StatsD.new(Datadog::Statsd.new).run(service) }
  #
  # Each exporter needs a gem, which must be in the bundle.
  module Exporters
    autoload :OpenTelemetry, "pando/exporters/open_telemetry"
    autoload :StatsD, "pando/exporters/statsd"
    autoload :Yabeda, "pando/exporters/yabeda"
  end
end
