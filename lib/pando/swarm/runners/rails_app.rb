# frozen_string_literal: true

require "pando/fork_safety"
require "pando/fork_safety/libraries/active_record_pools"
require "pando/swarm/runners"

module Pando
  module Swarm
    module Runners
      # Shared code of the runners whose job libraries are part of a Rails app.
      module RailsApp
        class << self
          # In the mold: loads the app, which brings the library with it. Leaves no connection open.
          # @param library [String] the name of its gem @param constant [Symbol] a constant that the gem defines
          def load(kind, library, constant)
            RequiredFiles.load(kind)
            Object.const_defined?(constant) or raise BootError, missing(kind, library)
            disconnect
          end

          # Closes all connections of Active Record's pools. They are opened again when they are needed.
          def disconnect = ForkSafety::Libraries::ActiveRecordPools.disconnect

          # @return [Boolean] whether the database is down for now, so that the query itself may be right
          def away?(error)
            error.is_a?(::ActiveRecord::ConnectionNotEstablished) || error.is_a?(::ActiveRecord::ConnectionFailed)
          end

          # Starts a thread beside the jobs that calls the block at intervals, the first time at once.
          # @param interval [Numeric] seconds
          def beside(name, interval, &look)
            ForkSafety.thread(name, late: :kill) do |thread|
              loop do
                within(&look)
                break if thread.wait(interval)
              end
            end
          end

          # Wraps a block in the Rails executor, as code on other threads should be.
          def within(&) = ::Rails.application.executor.wrap(&)

          private

          def missing(kind, library)
            return "node :#{library} needs your app: add require: \"./config/environment.rb\"" if kind.files.empty?

            "node :#{library} needs the gem #{library}: the app that #{kind.files.join(", ")} loads does not have it " \
              "(bundle add #{library})"
          end
        end

        # Counts the jobs that Active Job performs in this process, by ActiveSupport::Notifications. An attempt has
        # failed if it raised, if retry_on scheduled a retry, or if discard_on discarded the job. A job that another one
        # performs (`perform_now`) is a part of that one, and does not count.
        #
        # Owned by a runner. The threads that run jobs write; the node's main thread reads.
        class JobCounter
          PERFORM = "perform.active_job"
          NOT_DONE = /\A(?:enqueue_retry|discard)\.active_job\z/
          private_constant :PERFORM, :NOT_DONE

          # Attempts that have ended, and those of them that have failed.
          attr_reader :done, :failed
          # Grows with each job that begins or ends, also within another one.
          attr_reader :progress

          def initialize
            @lock = Mutex.new
            @done = @failed = @progress = 0
            @threads = [] # once for each job that it performs
          end

          # @return [self] it counts from now on
          def open
            @subscriptions = [ActiveSupport::Notifications.subscribe(PERFORM, self),
                              ActiveSupport::Notifications.subscribe(NOT_DONE) do |event|
                                # A job that asks for a retry without an error has not failed.
                                @lock.synchronize { @failed += 1 unless inner? } if event.payload[:error]
                              end]
            self
          end

          def close
            @subscriptions&.each { |one| ActiveSupport::Notifications.unsubscribe(one) }
            @subscriptions = nil
          end

          def in_progress = threads.size

          def threads = @lock.synchronize { @threads.uniq }

          # @api private a job begins, in the thread that runs it
          def start(_name, _id, _payload)
            @lock.synchronize do
              @progress += 1
              @threads << Thread.current
            end
          end

          # @api private the job has ended
          def finish(_name, _id, payload)
            @lock.synchronize do
              @progress += 1
              inner = inner?
              @threads.delete_at(@threads.index(Thread.current) || @threads.size)
              next if inner

              @done += 1
              @failed += 1 if payload[:exception_object]
            end
          end

          private

          # @return [Boolean] whether this thread performs a job within another one
          def inner? = @threads.count(Thread.current) > 1
        end
      end
    end
  end
end
