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
              return [worker(node, options)] unless node.number < options.fetch(:dispatchers)

              [worker(node, options), *others]
            end

            private

            def worker(node, options)
              options = options.slice(:polling_interval).compact
              Post.new(-> { Worker.new(queues: node.queues, threads: node.concurrency, **options) })
            end

            # As Solid Queue's supervisor would begin them, less the workers.
            def others
              ::SolidQueue::Configuration.new.configured_processes.filter_map do |one|
                member = BESIDE[one.kind] or next
                Post.new(-> { member.new(**one.attributes) })
              end
            end
          end
        end
      end
    end
  end
end
