# frozen_string_literal: true

require "pando/exporters/exporter"

module Pando
  module Exporters
    # Puts the metrics into Yabeda, in the group `pando`, whose adapters pass them on. It needs the gem yabeda and one
    # of its adapters:
    #
    #     service(:metrics) { |service| Pando::Exporters::Yabeda.new.run(service) }
    #
    # They are values of the service's process: an adapter that waits to be asked must be asked there.
    class Yabeda < Exporter
      # @param every [Numeric] seconds from one report to the next
      # @raise [ArgumentError] the gem is not loaded
      def initialize(every: EVERY)
        super
        return if defined?(::Yabeda)

        raise ArgumentError, "Yabeda is not loaded: add the gem yabeda and an adapter, such as yabeda-prometheus"
      end

      private

      def prepare
        Admin::Metrics.known.each { |one| define(one) }
        ::Yabeda.configure! unless ::Yabeda.configured?
        @labels = Admin::Metrics.known.to_h { |one| [one.name, one.labels] }
      end

      def define(known)
        name = name_of(known).to_sym
        options = { tags: known.labels, unit: unit(known)&.to_sym, comment: known.help,
                    buckets: (Admin::Exposition::BOUNDS if known.type == :histogram) }.compact
        ::Yabeda.configure do
          group :pando
          public_send(known.type, name, **options)
        end
      end

      def gauge(family, labels, value) = metric(family).set(tags(family, labels), value)
      def counter(family, labels, value) = metric(family).increment(tags(family, labels), by: value)

      def histogram(family, labels, times)
        tags = tags(family, labels)
        each_time(times) { |seconds| metric(family).measure(tags, seconds) }
      end

      def metric(family) = ::Yabeda.metrics.fetch("pando_#{name_of(family)}")

      # Adapters write the unit behind it.
      def name_of(family) = family.name.delete_prefix("pando_").delete_suffix("_#{unit(family)}")
      def unit(family) = (family.unit if family.name.end_with?("_#{family.unit}"))

      # Adapters want all of them.
      def tags(family, labels) = @labels.fetch(family.name).to_h { |name| [name, labels[name].to_s] }
    end
  end
end
