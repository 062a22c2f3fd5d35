# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # One of a node's Solid Queue processes. Its thread dies of the first error that the database gives it, so it
        # is replaced here when it has, as Solid Queue's supervisor would replace a process.
        #
        # Owned by the runner; all but #quiet, #busy? and #stop runs in the thread beside the jobs.
        #
        # @api private
        class Post
          # Seconds that it may take to register, and to end.
          WITHIN = 5.0
          SLICE = 0.01

          # @param make [#call] makes a Member
          def initialize(make)
            @make = make
            @retired = []
          end

          # @return [Boolean] whether its thread does not live
          def vacant? = !@member&.alive?

          # Begins it, if it does not live.
          def fill
            @retired << @member if @member
            @member = @make.call
            hush # it may have been told meanwhile
            @member.start
            deadline = Sys.now + WITHIN
            sleep(SLICE) until @member.process_id || vacant? || Sys.now > deadline
          end

          # The registrations that the dead could not take back themselves; of a worker only when its jobs have ended,
          # for who takes back its registration gives away its jobs.
          def clear
            @retired.reject! { |member| ended?(member) && remove(member) }
          end

          # @return [Array<Integer>] ids of the registrations that are ours
          def ids = everybody.filter_map(&:process_id)

          # Also for one that is just being made.
          def quiet
            @quiet = true
            hush
          end

          def busy? = everybody.any? { |member| member.respond_to?(:busy?) && member.busy? }

          # Its registrations are taken back, and what it still holds is given away.
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

          # What its thread has died of has been told already, and is raised again to whoever waits for it.
          def end_quietly(member)
            quietly { member.stop }
            quietly { RailsApp.within { take_back(everybody) } }
          end

          # Nobody waits for an answer. If the database is away, the nodes that are left find out that these are dead.
          def quietly
            yield
          rescue StandardError
            nil
          end

          def ended?(member)
            return true unless member.respond_to?(:pool)

            member.pool.shutdown # if it has died before it did so
            member.pool.shutdown?
          end

          def remove(member)
            take_back([member])
            member.close
            true
          end

          # By their names: one whose thread has died may have known its registration, or not.
          def take_back(members)
            ::SolidQueue::Process.where(name: members.map(&:name)).each(&:deregister)
          end
        end
      end
    end
  end
end
