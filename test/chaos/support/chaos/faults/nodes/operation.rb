# frozen_string_literal: true

module Chaos
  module Faults
    # Reforks only the nodes.
    class ReforkNodes < Fault
      include OfNodes

      named "refork nodes", weight: 6, evidence: /\Arefork\.finished\z/

      def inject = scene.control.tell("refork pool=#{Roll::NODES} force=yes")
    end

    # Changes the number of nodes.
    class ScaleNodes < Scale
      include OfNodes

      named "scale nodes", weight: 4, evidence: superclass.evidence

      private

      def usual = Stage::NODES
      def scale(nodes) = scene.control.tell("scale pool=#{Roll::NODES} workers=#{nodes}")
    end

    # A release whose nodes fail to start.
    class BadNodeRelease < BadRelease
      include OfNodes

      named "bad release of nodes", weight: 4, evidence: superclass.evidence

      KINDS = {
        "require" => ->(rackup, config) { [rackup, config.sub("queue_runner.rb", "no_such_file.rb")] },
        "runner" => ->(rackup, config) { [rackup, config.sub("QueueRunner.new", "NoSuchRunner.new")] }
      }.freeze
    end

    # EMFILE: a node can read neither its queue nor a job.
    class NoDescriptorsForNodes < NoDescriptors
      include OfNodes

      named "no descriptors for nodes", weight: 4, evidence: superclass.evidence

      ROLES = ["node", "node mold"].freeze
    end

    # ENOMEM.
    class NoMemoryForNodes < NoMemory
      include OfNodes

      named "no memory for nodes", weight: 4, evidence: superclass.evidence

      ROLES = ["node", "node", "node mold"].freeze
    end
  end
end
