# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      # Counts the jobs that Active Job performs in this process, by ActiveSupport::Notifications. An attempt has failed
      # if it raised, if retry_on scheduled a retry, or if discard_on discarded the job.
      #
      # Owned by a runner. The threads that run jobs write; the node's main thread reads.
      #
      # @api private
      class ActiveJobTally
        PERFORM = "perform.active_job"
        TURNED_AWAY = /\A(?:enqueue_retry|discard)\.active_job\z/
        private_constant :PERFORM, :TURNED_AWAY

        # @return [Integer] attempts that have ended, successful or not
        attr_reader :done
        # @return [Integer]
        attr_reader :failed

        def initialize
          @lock = Mutex.new
          @done = @failed = 0
          @threads = []
        end

        # @return [self] it counts from now on
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

        # @return [Array<Thread>] threads that run a job now
        def threads = @lock.synchronize { @threads.uniq }

        # @api private a job begins, in the thread that runs it
        def start(_name, _id, _payload)
          @lock.synchronize { @threads << Thread.current }
        end

        # @api private the job has ended
        def finish(_name, _id, payload)
          @lock.synchronize do
            @threads.delete_at(@threads.index(Thread.current) || @threads.size)
            @done += 1
            @failed += 1 if payload[:exception_object]
          end
        end

        private

        # A job that asks for a retry without an error has not failed.
        def turned_away(payload)
          @lock.synchronize { @failed += 1 } if payload[:error]
        end
      end
    end
  end
end
