# frozen_string_literal: true

require "pando/server/payload"

module Pando
  class Server
    # Job nodes of one kind as the cluster carries them: there is no Rack application, and no listener.
    class NodePayload < Payload
      def initialize(server, kind)
        super(server)
        @kind = kind
      end

      def name = @kind.name
      def worker_name = name
      # The runner manages threads of its own.
      def threads = 1
      def reactor(_descriptors = nil) = nil

      # All of its kind may have changed but the name.
      def adopt(renewal)
        @kind = Kinds.node(renewal.config, name)
        super
      end

      # To replace a node may interrupt long jobs, which its growth is not worth.
      def work(_listeners, _channel)
        collector = Refork::Collector.for(@config, replaceable: false)
        Swarm::JobHandler.new(@kind, @make, @config.timeout_grace, collector)
      end

      private

      def options_of(config)
        super.tap do |options|
          own_options.each { |name, value| options[name] = value }
          options.memory.worker = @kind.memory
          options.services = [] unless Kinds.names(config).first == name # they run once
        end
      end

      def own_options
        { workers: @kind.count, auto_workers: false, canary: ClusterOptions.canary(@kind.canary),
          jobs: true, prefault: prefault_terms, slow: nil, health: nil,
          longest_request: @kind.quiet_timeout, longest_wait: 0.0, drain: 0.0,
          **@kind.to_h.slice(:exclusive, :shared, :surge, :unavailable) }
      end

      # By default none: no client waits for the first jobs of a new node, and a node would have those pages from its
      # birth on.
      def prefault_terms = @config.default?(:refork_prefault) ? false : super

      def load_application
        check_independence
        check_collections
        require "pando/swarm/job_handler"
        @runner = Swarm::Runners.load(@kind.runner) if @kind.runner
        @runner ? @runner.load(@kind) : Swarm::RequiredFiles.load(@kind)
        @make = @runner ? @runner.method(:new) : @kind.factory
      end

      # Some runners know what their threads need.
      def check_connections
        need = @runner.connections(@kind) if @runner.respond_to?(:connections)
        return unless need

        few = ForkSafety::Libraries::ActiveRecordPools.smaller_than(need.least)
        few = few.slice(need.database) if need.database
        tell_few(few, need.threads, need.wanted)
      end

      # Its first mold may be forked from the HTTP workers', but later ones may have to boot by themselves.
      def check_independence
        return unless @kind.shared && @kind.runner && @kind.files.empty?

        raise BootError, "#{@kind.source}: node :#{@kind.runner} needs require: with shared: true as well, for when " \
                         "#{Kinds.names(@config).first} has been reforked it boots by itself"
      end

      # There is no HTTP.
      def warm_up_http(_role); end
    end
  end
end
