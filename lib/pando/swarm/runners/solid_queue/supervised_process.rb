# frozen_string_literal: true

require "pando/sys"

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # One of a node's Solid Queue processes. Its thread dies of the first error from the database. Then this class
        # replaces it, as Solid Queue's supervisor would replace a process.
        #
        # Owned by the runner. Everything except #quiet, #busy? and #stop runs in the thread beside the jobs.
        #
        # @api private
        class SupervisedProcess
          # Seconds that it has to register, and to end.
          END_WITHIN = 5.0
          PAUSE = 0.01

          # @yieldreturn [EmbeddedProcess] a new one, each time
          def initialize(&make)
            @make = make
            @retired = []
          end

          # @return [Boolean] whether its thread is dead or missing
          def stopped? = !@current&.alive?

          # Starts the process, if its thread is dead or missing.
          def start
            @retired << @current if @current
            @current = @make.call
            apply_quiet # it may have been told to be quiet meanwhile
            @current.start
            deadline = Sys.now + END_WITHIN
            sleep(PAUSE) until @current.process_id || stopped? || Sys.now > deadline
          end

          # Removes the registrations that dead processes could not remove. A worker's registration goes only when its
          # jobs have ended, because removing it gives the jobs away.
          def remove_dead
            @retired.reject! { |member| ended?(member) && remove(member) }
          end

          # @return [Array<Integer>] ids of our registrations
          def ids = members.filter_map(&:process_id)

          # Also takes effect on a process that is just being made.
          def quiet
            @quiet = true
            apply_quiet
          end

          def busy? = members.any? { |member| member.respond_to?(:busy?) && member.busy? }

          # Removes its registrations, and gives away the jobs that it still holds.
          def stop
            finish(@current) if @current
            members.each(&:close)
          end

          private

          def members = [*@current, *@retired]

          def finish(member)
            ending = Thread.new { end_quietly(member) }
            ending.join(::SolidQueue.shutdown_timeout.to_f + END_WITHIN)
            Thread.list.each { |thread| thread.kill.join(1) if thread.name == member.name }
            ending.kill.join(1)
          end

          def apply_quiet
            member = @current
            member.quiet if @quiet && member.respond_to?(:quiet)
          end

          # The error that the thread died of has been reported already; the thread raises it again to a caller that
          # joins it.
          def end_quietly(member)
            quietly { member.stop }
            quietly { RailsApp.within { deregister(members) } }
          end

          # No caller needs the result. If the database is down, the remaining nodes find out that these processes are
          # dead.
          def quietly
            yield
          rescue StandardError
            nil
          end

          def ended?(member)
            return true unless member.respond_to?(:pool)

            member.pool.shutdown # it may have died before it did so
            member.pool.shutdown?
          end

          def remove(member)
            deregister([member])
            member.close
            true
          end

          # Finds them by name: a dead thread may not have known its registration.
          def deregister(some)
            ::SolidQueue::Process.where(name: some.map(&:name)).each(&:deregister)
          end
        end
      end
    end
  end
end
