# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      # Counts the jobs that ActiveJob performs in this process, by what it tells ActiveSupport::Notifications. A try
      # that failed is one that raised, was put off by retry_on or given up by discard_on.
      #
      # Owned by a runner; told by the threads that do the jobs, read by the node's main thread.
      #
      # @api private
      class ActiveJobTally
        PERFORM = "perform.active_job"
        TURNED_AWAY = /\A(?:enqueue_retry|discard)\.active_job\z/
        private_constant :PERFORM, :TURNED_AWAY

        # @return [Integer] tries that came to an end, well or not
        attr_reader :done
        # @return [Integer]
        attr_reader :failed

        def initialize
          @lock = Mutex.new
          @done = @failed = 0
          @threads = []
        end

        # @return [self] counts from now on
        def open
          @subscriptions = [ActiveSupport::Notifications.subscribe(PERFORM, self),
                            ActiveSupport::Notifications.subscribe(TURNED_AWAY) { |event| turned_away(event.payload) }]
          self
        end

        def close
          @subscriptions&.each { |one| ActiveSupport::Notifications.unsubscribe(one) }
          @subscriptions = nil
        end

        # @return [Integer] jobs that run now
        def in_progress = @threads.size

        # @return [Integer] grows with each job that begins or ends
        def progress = (2 * @done) + in_progress

        # @return [Array<Thread>] those that run a job now
        def threads = @lock.synchronize { @threads.uniq }

        # @api private a job begins, in the thread that does it
        def start(_name, _id, _payload)
          @lock.synchronize { @threads << Thread.current }
        end

        # @api private it has ended
        def finish(_name, _id, payload)
          @lock.synchronize do
            @threads.delete_at(@threads.index(Thread.current) || @threads.size)
            @done += 1
            @failed += 1 if payload[:exception_object]
          end
        end

        private

        # A job that asks for a retry without having failed is none of these.
        def turned_away(payload)
          @lock.synchronize { @failed += 1 } if payload[:error]
        end
      end
    end
  end
end
