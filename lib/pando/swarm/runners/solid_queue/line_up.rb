# frozen_string_literal: true

require "pando/swarm/runners/solid_queue/members"
require "pando/swarm/runners/solid_queue/post"

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # Says which of Solid Queue's processes a node runs.
        #
        # @api private
        module LineUp
          BESIDE = { dispatcher: Dispatcher, scheduler: Scheduler }.freeze
          private_constant :BESIDE

          class << self
            # @param node [Node] @param options [Hash] the node's options, complete
            # @return [Array<Post>] not yet filled
            def posts(node, options)
              workers = options.fetch(:queue_file) ? workers_of_file : [worker(node, options)]
              node.number < options.fetch(:dispatchers) ? [*workers, *others] : workers
            end

            # @return [Array<String>] the queues whose waiting jobs the node counts
            def queues(node, options)
              return node.queues unless options.fetch(:queue_file)

              configured(:worker).flat_map { |one| [*one.attributes[:queues]] }.uniq
            end

            # Checks config/queue.yml as bin/jobs does, for a node that runs its workers.
            #
            # @raise [BootError]
            def check
              configuration = ::SolidQueue::Configuration.new
              wrong = configuration.errors.full_messages if configuration.respond_to?(:valid?) && !configuration.valid?
              wrong ||= ["fibers: is not supported, write threads:"] if configured(:worker).any? do |one|
                one.attributes[:fibers]
              end
              raise BootError, "node :solid_queue, queue_file: true: config/queue.yml: #{wrong.join("; ")}" if wrong
            rescue ::ActiveRecord::ActiveRecordError
              nil # recurring tasks query the database, which may be up later
            end

            private

            def worker(node, options)
              options = options.slice(:polling_interval).compact
              Post.new(-> { Worker.new(queues: node.queues, threads: node.concurrency, **options) })
            end

            # `processes: 3` of a worker means three workers.
            def workers_of_file
              configured(:worker).map { |one| Post.new(-> { Worker.new(**one.attributes.except(:processes)) }) }
            end

            # The processes that Solid Queue's supervisor would start, without the workers.
            def others
              BESIDE.flat_map do |kind, member|
                configured(kind).map { |one| Post.new(-> { member.new(**one.attributes) }) }
              end
            end

            def configured(kind)
              ::SolidQueue::Configuration.new.configured_processes.select { |one| one.kind == kind }
            end
          end
        end
      end
    end
  end
end
