# frozen_string_literal: true

require "pando/server/node_options"
require "pando/server/payload"

module Pando
  class Server
    # Job nodes of one kind as the cluster carries them: there is no Rack application, and nobody listens.
    #
    # @api private
    class NodePayload < Payload
      # Before this Ruby, hashes did not find some of their keys after the heap was compacted (its bug 20853).
      COMPACTS = [3, 3, 6].freeze

      # @param ruby [String] a version
      # @return [Symbol] what is done with the heap of a mold unless the user has said it. Job libraries do the same
      #   before they fork, so the apps bear it. A node's garbage is collected when Ruby does it, not between jobs: what
      #   is free in the heap is to lie close together, so that new objects are in fewer of the pages that were shared.
      def self.usual_preparation(ruby = RUBY_VERSION)
        (ruby.split(".").map(&:to_i) <=> COMPACTS).negative? ? :promote : :warmup
      end

      # @param kind [Swarm::Kind]
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

      def prepare
        wanted = @config.default?(:gc_mold) ? NodePayload.usual_preparation : @config.gc_mold
        Refork::Preparation.run(wanted)
      end

      def work(_listeners, _channel) = Swarm::Work.new(@kind, @make, @config.timeout_grace)

      private

      def options_of(config) = NodeOptions.of(config, @kind)

      # What the nodes run, and all that it needs.
      def load_application
        check_independence
        require "pando/swarm"
        require "pando/swarm/work"
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
