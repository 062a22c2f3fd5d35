# frozen_string_literal: true

require "pando/exporters/exporter"

module Pando
  module Exporters
    # Sends the metrics to a StatsD server that knows tags, such as Datadog's agent, by the gem dogstatsd-ruby (which is
    # required as "datadog/statsd"):
    #
    #     service(:metrics) do |service|
    #       Pando::Exporters::StatsD.new(Datadog::Statsd.new("localhost", 8125)).run(service)
    #     end
    #
    # A histogram is sent as `.count` and `.sum` of what was added, and as gauges `.p50`, `.p95` and `.p99` of that.
    class StatsD < Exporter
      SHARES = { "p50" => 0.5, "p95" => 0.95, "p99" => 0.99 }.freeze

      # @param client [Datadog::Statsd] or another one with its methods #gauge and #count
      # @param every [Numeric] seconds from one report to the next
      # @raise [ArgumentError] it is no such client
      def initialize(client, every: EVERY)
        super(every: every)
        unless %i[gauge count].all? { |name| client.respond_to?(name) }
          raise ArgumentError, "the exporter needs a client such as Datadog::Statsd.new (gem \"dogstatsd-ruby\"), " \
                               "not #{client.class}"
        end

        @client = client
      end

      private

      def gauge(family, labels, value) = @client.gauge(dotted(family), value, tags: tags(labels))
      def counter(family, labels, value) = @client.count(dotted(family), value, tags: tags(labels))

      def histogram(family, labels, times)
        name = dotted(family)
        @client.count("#{name}.count", times.size, tags: tags(labels))
        @client.count("#{name}.sum", times.sum, tags: tags(labels))
        SHARES.each { |share, of| @client.gauge("#{name}.#{share}", times.percentile(of), tags: tags(labels)) }
      end

      # The client gathers datagrams, and sends them in the background.
      def finish = (@client.flush(sync: true) if @client.respond_to?(:flush))

      def dotted(family) = "pando.#{name_of(family)}"
      def tags(labels) = labels.map { |name, value| "#{name}:#{value}" }
    end
  end
end
