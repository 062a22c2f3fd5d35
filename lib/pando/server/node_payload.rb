# frozen_string_literal: true

require "pando/server/node_options"
require "pando/server/payload"

module Pando
  class Server
    # Job nodes of one kind as the cluster carries them: there is no Rack application, and nobody listens.
    #
    # @api private
    class NodePayload < Payload
      # @param kind [Config::NodeKind]
      def initialize(server, kind)
        super(server)
        @kind = kind
      end

      def name = @kind.name
      def worker_name = name
      def reactor(_descriptors = nil) = nil

      # Its kind may have changed with all else, but for its name.
      def adopt(renewal)
        @kind = Kinds.node(renewal.config, name)
        super
      end

      def work(_listeners, _channel) = Swarm::JobHandler.new(@kind, @make, @config.timeout_grace)

      private

      def options_of(config) = NodeOptions.of(config, @kind)

      # What the nodes run, and all that it needs.
      def load_application
        check_independence
        require "pando/swarm/job_handler"
        runner = Swarm::Runners.load(@kind.runner) if @kind.runner
        runner ? runner.load(@kind) : Swarm::RequiredFiles.load(@kind)
        @make = runner ? runner.method(:new) : @kind.factory
      end

      # Whatever its first mold was forked from: later ones may have to boot by themselves.
      def check_independence
        return unless @kind.shared && @kind.runner && @kind.files.empty?

        raise BootError, "#{@kind.source}: node :#{@kind.runner} needs require: with shared: true as well, for when " \
                         "#{Kinds.names(@config).first} has been reforked it boots by itself"
      end

      # A node's work is its own from its first breath.
      def rehearse(_role); end
    end
  end
end
