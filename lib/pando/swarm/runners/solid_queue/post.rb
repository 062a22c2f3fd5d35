# frozen_string_literal: true

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
        class Post
          # Seconds that it has to register, and to end.
          WITHIN = 5.0
          SLICE = 0.01

          # @param make [#call] makes a Member
          def initialize(make)
            @make = make
            @retired = []
          end

          # @return [Boolean] whether its thread is dead or missing
          def vacant? = !@member&.alive?

          # Starts the process, if its thread is dead or missing.
          def fill
            @retired << @member if @member
            @member = @make.call
            hush # it may have been told to be quiet meanwhile
            @member.start
            deadline = Sys.now + WITHIN
            sleep(SLICE) until @member.process_id || vacant? || Sys.now > deadline
          end

          # Removes the registrations that dead members could not remove. A worker's registration goes only when its
          # jobs have ended, because removing it gives the jobs away.
          def clear
            @retired.reject! { |member| ended?(member) && remove(member) }
          end

          # @return [Array<Integer>] ids of our registrations
          def ids = everybody.filter_map(&:process_id)

          # Also takes effect on a member that is just being made.
          def quiet
            @quiet = true
            hush
          end

          def busy? = everybody.any? { |member| member.respond_to?(:busy?) && member.busy? }

          # Removes its registrations, and gives away the jobs that it still holds.
          def stop
            finish(@member) if @member
            everybody.each(&:close)
          end

          private

          def everybody = [*@member, *@retired]

          def finish(member)
            ending = Thread.new { end_quietly(member) }
            ending.join(::SolidQueue.shutdown_timeout.to_f + WITHIN)
            Thread.list.each { |thread| thread.kill.join(1) if thread.name == member.name }
            ending.kill.join(1)
          end

          def hush
            member = @member
            member.quiet if @quiet && member.respond_to?(:quiet)
          end

          # The error that the thread died of has been reported already; the thread raises it again to a caller that
          # joins it.
          def end_quietly(member)
            quietly { member.stop }
            quietly { RailsApp.within { take_back(everybody) } }
          end

          # No caller needs the result. If the database is down, the remaining nodes find out that these members are
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
            take_back([member])
            member.close
            true
          end

          # Finds them by name: a dead thread may not have known its registration.
          def take_back(members)
            ::SolidQueue::Process.where(name: members.map(&:name)).each(&:deregister)
          end
        end
      end
    end
  end
end
