# frozen_string_literal: true

require "pando/swarm/runners/solid_queue/members"
require "pando/swarm/runners/solid_queue/post"

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # Which of Solid Queue's processes a node has.
        #
        # @api private
        module LineUp
          BESIDE = { dispatcher: Dispatcher, scheduler: Scheduler }.freeze
          private_constant :BESIDE

          class << self
            # @param node [Node] @param options [Hash] its own, complete
            # @return [Array<Post>] none is filled yet
            def posts(node, options)
              workers = options.fetch(:queue_file) ? workers_of_file : [worker(node, options)]
              node.number < options.fetch(:dispatchers) ? [*workers, *others] : workers
            end

            # @return [Array<String>] the queues whose waiting jobs are the node's
            def queues(node, options)
              return node.queues unless options.fetch(:queue_file)

              configured(:worker).flat_map { |one| [*one.attributes[:queues]] }.uniq
            end

            # For a node that runs what config/queue.yml says: bin/jobs would refuse the same.
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
              nil # recurring tasks ask the database, which may come later
            end

            private

            def worker(node, options)
              options = options.slice(:polling_interval).compact
              Post.new(-> { Worker.new(queues: node.queues, threads: node.concurrency, **options) })
            end

            # `processes: 3` of a worker are three workers.
            def workers_of_file
              configured(:worker).map { |one| Post.new(-> { Worker.new(**one.attributes.except(:processes)) }) }
            end

            # As Solid Queue's supervisor would begin them, less the workers.
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
