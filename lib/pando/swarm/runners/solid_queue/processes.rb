# frozen_string_literal: true

require "pando/swarm/process_identity"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      class SolidQueue
        # One of a node's Solid Queue processes. Its thread dies of the first error from the database. Then this class
        # replaces it, as Solid Queue's supervisor would replace a process.
        #
        # Owned by the runner. Everything except #quiet, #busy? and #stop runs in the thread beside the jobs.
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
            @current.quiet if @quiet # it may have been told so meanwhile
            @current.start
            deadline = Sys.now + END_WITHIN
            sleep(PAUSE) until @current.process_id || stopped? || Sys.now > deadline
          end

          # Removes the registrations that dead processes could not remove. A worker's registration goes only when its
          # jobs have ended, because removing it gives the jobs away.
          def remove_dead = @retired.reject! { |member| member.at_rest? && remove(member) }

          def names = members.map(&:name)

          # Also takes effect on a process that is just being made.
          def quiet
            @quiet = true
            @current&.quiet
          end

          def busy? = members.any?(&:busy?)

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

        # Solid Queue's processes, each of which is a thread of a node here. They register with the node's pid and its
        # identity, and leave no pipe behind.
        module EmbeddedProcess
          # @return [Hash] saved with the registration
          def metadata = super.merge(life: ProcessIdentity.here)

          # @return [Boolean, nil] whether its thread lives; Solid Queue tells only since 1.3
          def alive? = @thread&.alive?

          # Only workers have jobs.
          def quiet = nil
          def busy? = false
          def at_rest? = true

          # Call it when nothing of this process runs any more.
          def close = self_pipe.each_value(&:close)

          private

          # After a long outage Solid Queue would give the registration up. Pando's nodes know better, and a supervisor
          # elsewhere that has removed it is noticed at the next heartbeat.
          def presumed_dead? = false
        end

        class Dispatcher < ::SolidQueue::Dispatcher
          include EmbeddedProcess
        end

        class Scheduler < ::SolidQueue::Scheduler
          include EmbeddedProcess
        end

        # A worker that can stop claiming jobs and keep its registration, so its jobs stay its own as long as they run.
        # Solid Queue's own stop would give them to others after five seconds.
        class Worker < ::SolidQueue::Worker
          include EmbeddedProcess

          # Seconds that it sleeps at a time when it claims no more jobs.
          PAUSE = 3600

          def initialize(...)
            @claims = Mutex.new # protects the following
            @quiet = @claiming = false
            super
          end

          # Returns at once. The worker still runs the jobs that it is just claiming.
          def quiet
            @claims.synchronize { @quiet = true }
          end

          # Whether its jobs have ended, now that its thread has.
          def at_rest?
            pool.shutdown # the thread may have died before it did so
            pool.shutdown?
          end

          # True from before a claim until everything about the job is recorded.
          def busy? = @claims.synchronize { @claiming } || free < pool.size

          # Call it when its registration is gone.
          def close
            @closed = true
            stop_heartbeat
            super
          end

          private

          # Solid Queue calls these two when the thread ends, perhaps of an error. If a job still runs, the registration
          # stays and does not fall silent: the SupervisedProcess removes it later.
          def deregister = (super if at_rest?)
          def stop_heartbeat = (super if @closed || at_rest?)

          # The step of Solid Queue's loop in which its kinds of processes differ.
          # @return [Numeric] seconds to sleep; in 1.0 the number of jobs, and after 0 it sleeps for polling_interval
          def poll
            claims = @claims.synchronize { @claiming = !@quiet }
            claims ? super : 0
          ensure
            @claims.synchronize { @claiming = false }
          end

          # A quiet one has nothing to look for.
          def interruptible_sleep(seconds) = super(@claims.synchronize { @quiet } ? PAUSE : seconds)

          # Before 1.5 this method had another name.
          def free = pool.respond_to?(:available_capacity) ? pool.available_capacity : pool.idle_threads
        end

        # The list of Solid Queue's processes that a node runs. Made in the node, at the start of its runner.
        module ProcessList
          OTHERS = { dispatcher: Dispatcher, scheduler: Scheduler }.freeze
          private_constant :OTHERS

          class << self
            # @param node [Node] @param options [Hash] the node's options, complete
            # @return [Array<SupervisedProcess>] not yet started
            def processes(node, options)
              workers = options.fetch(:queue_file) ? workers_of_file : [worker(node, options)]
              node.number < options.fetch(:dispatchers) ? [*workers, *others(node)] : workers
            end

            # @return [Array<String>] the queues whose waiting jobs the node counts
            def queues(node, options)
              return node.queues unless options.fetch(:queue_file)

              configured(:worker).flat_map { |one| [*one.attributes[:queues]] }.uniq
            end

            # @return [Array<Integer>] the threads of each worker in a node
            def threads(kind)
              return [kind.concurrency] unless kind.options[:queue_file]

              configured(:worker).map { |one| one.attributes.fetch(:threads) }
            end

            # Checks config/queue.yml as bin/jobs does, for a node that runs its workers.
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
              SupervisedProcess.new { Worker.new(queues: node.queues, threads: node.concurrency, **options) }
            end

            # `processes: 3` of a worker means three workers.
            def workers_of_file
              configured(:worker).map do |one|
                SupervisedProcess.new { Worker.new(**one.attributes.except(:processes)) }
              end
            end

            # The processes that Solid Queue's supervisor would start, without the workers.
            def others(node)
              OTHERS.flat_map do |kind, process_class|
                wanted = configured(kind).select { |one| kind != :scheduler || schedules?(node, one) }
                wanted.map { |one| SupervisedProcess.new { process_class.new(**one.attributes) } }
              end
            end

            # Several schedulers enqueue a task only once because of a row that Solid Queue writes with the job. That
            # row is deleted with the job, and there is none if the job goes to another adapter of Active Job. Then only
            # one node may have a scheduler.
            def schedules?(node, scheduler)
              return true if node.number.zero?
              return false unless ::SolidQueue.preserve_finished_jobs?

              scheduler.attributes.fetch(:recurring_tasks).all? { |task| recorded?(task) }
            end

            def recorded?(task)
              name = task.class_name.presence
              job_class = name ? name.safe_constantize : ::SolidQueue::RecurringTask.default_job_class
              !job_class.respond_to?(:queue_adapter_name) || job_class.queue_adapter_name == "solid_queue"
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
