# frozen_string_literal: true

require "pando/cluster/monitor"
require "pando/refork"
require_relative "payload"
require_relative "fakes"

module ClusterSupport
  # For tests of a monitor with all its parts, which has begun nothing yet.
  module BareMonitor
    # A server's start, but for what concerns the whole process.
    class Start < Pando::Cluster::Start
      def take_charge(_signals) = nil
      def systemd = Pando::Cluster::Systemd.from({})
      def inherited_sockets = Pando::Cluster::Listening::Inherited.from({})
      def listeners(specs) = Pando::Cluster::Listening::Listeners.open(specs, inherited_sockets)
    end

    # A server's payload, but for the application.
    class Payload < ClusterSupport::Payload
      attr_reader :name, :options

      def initialize(name, companions)
        super()
        @name = name
        @companions = companions
        @options = ClusterSupport.options(longest_wait: 5.0)
      end

      def companions
        @companions.map do |name|
          Pando::Cluster::Pools::Plan.new(payload: Payload.new(name, []), policy: Pando::Refork::Manual.new)
        end
      end
    end

    def set_up_monitor
      payload = Payload.new("web", ["jobs"])
      @monitor = Pando::Cluster::Monitor.new(payload, [], Pando::Refork::Manual.new, [], Start.new)
      @monitor.send(:set_up)
      @monitor
    end

    def teardown
      @monitor&.send(:close)
      super
    end
  end
end
