# frozen_string_literal: true

require "pando/cluster/control/tasks"

module Pando
  module Cluster
    class Control
      # The second half of the tasks: those that concern one pool, or one worker.
      module Tasks
        # Forks the next generation from a warm worker.
        class Refork < Task
          REFUSALS = %w[refork.refused refork.withheld].freeze

          def initialize(cluster, pool, force)
            super(cluster)
            @pool = pool
            @name = (pool.name if cluster.pools.several?)
            @force = force
          end

          # Waits a while for workers that start or leave, as they do after the last refork.
          def start
            @until = Sys.now + @pool.options.stop_timeout + @pool.options.longest_request.to_f
            check
          end

          def check
            return if @begun || (@pool.generations.reforks.blocking_worker && Sys.now < @until)

            @begun = true
            @cluster.pools.about(@pool) { @pool.generations.refork("pando refork", force: @force) }
            @number = @pool.generations.upcoming&.number unless over?
          end

          def observe(event)
            return unless event[:pool] == @name && @begun
            return give_up("refused: #{event[:reason]}") if REFUSALS.include?(event.name) && @number.nil?

            observe_generation(event) if @number && event[:generation] == @number
          end

          def obstacle
            return starting_or_leaving unless @begun

            upcoming = @pool.generations.upcoming
            return unless upcoming && upcoming.number == @number

            source_at_work(upcoming.mold) || thread_on_trial
          end

          private

          def observe_generation(event)
            case event.name
            when "canary.unproven" then @unproven = ", without proof: #{event[:reason]}"
            when "refork.finished"
              achieve("every worker runs generation #{@number}, after #{event[:seconds]} s#{@unproven}")
            when "generation.refused" then give_up("refused: #{event[:reason]}")
            when "generation.discarded" then give_up("generation #{@number} was discarded: #{event[:reason]}")
            end
          end

          # Describes each worker once: that its request has ended is no news.
          def starting_or_leaving
            worker = @pool.generations.reforks.blocking_worker or return
            @descriptions ||= {}.compare_by_identity
            @descriptions[worker] ||= describe(worker)
            [@descriptions[worker], @until - Sys.now]
          end

          def describe(worker)
            busy = ", and #{engagement(worker)}" if worker.pid && worker.job.any?
            "#{title(worker)} is #{worker.leaving? ? "leaving" : "starting"}#{busy}"
          end

          # The source of the mold forks between two requests.
          def source_at_work(mold)
            return unless mold&.ordered? && mold.source&.job&.any?

            ends = [mold.deadline, (mold.source.hard_deadline unless @pool.options.jobs)].compact.min
            ["#{title(mold.source)} #{engagement(mold.source)}", ends - Sys.now]
          end

          def thread_on_trial
            generations = @pool.generations
            generations.occupation if generations.on_trial? && generations.lost_threads.pending?
          end

          def achieve(text) = super([*@name, text].join(": "))
          def give_up(text) = super([*@name, text].join(": "))
        end

        # Starts more workers, or ends some. It is over when all workers are ready and the surplus has left. If that
        # takes too long, it says why; the monitor keeps the number and goes on trying.
        class Scale < Task
          # Events about a worker that failed to start.
          FAILURES = %w[worker.failed fork.failed spawn.failed check.failed].freeze
          # After so many of them it waits no longer.
          TRIES = 3

          def initialize(cluster, pool, size)
            super(cluster)
            @pool = pool
            @name = (pool.name if cluster.pools.several?)
            @size = size
            @failures = 0
          end

          def start
            give_up(bounds) unless @cluster.pools.about(@pool) { @pool.rollout.scale(@size) }
          end

          def lasting? = true

          def check
            now = @pool.rollout.size
            return give_up("another command has asked for #{counted(now, "worker")} since") if now != @size
            return achieve(success) if workers.size == @size && workers.all?(&:ready?)

            give_up(missing("after #{timeout.round} s")) if Sys.now >= deadline
          end

          def observe(event)
            return unless event[:pool] == @name
            return give_up(unbootable(event[:reason])) if event.name == "pool.failing"
            return unless FAILURES.include?(event.name) && event[:slot]

            @failures += 1
            @reason = event[:reason]
            give_up(missing("after #{counted(@failures, "failure")}")) if @failures >= TRIES
          end

          def bounds
            rollout = @pool.rollout
            others = rollout.others
            threads = @pool.roster.threads
            room = "1 to #{counted(rollout.most(others), "worker")}#{" with #{threads} threads each" if threads > 1}"
            limit = "a server has #{Roster::LANES} threads at most"
            return "there can be #{room}: #{limit}, and a rollout needs some of them" if others.zero?

            "#{@name} can have #{room}: #{limit}, and the other pools need #{others} of them, counting the extra " \
              "worker of a rollout"
          end

          # A worker ends its request before it leaves; without a mold there is nothing to fork workers from.
          def obstacle
            busy = workers.find { |worker| worker.leaving? && worker.job.any? }
            return ["#{title(busy)} #{engagement(busy)}", deadline - Sys.now] if busy

            @pool.generations.occupation unless @pool.generations.current&.forks?
          end

          private

          # One that keeps its connections for a while is not waited for.
          def workers = @pool.roster.workers.reject(&:draining?)

          # It starts again after an upgrade of the monitor.
          def deadline = @deadline ||= Sys.now + timeout

          # Seconds in which a worker starts, or ends its request and leaves.
          def timeout
            options = @pool.options
            options.spawn_timeout + options.stop_timeout + options.longest_request.to_f +
              (@pool.generations.current&.forks? ? 0.0 : options.boot_timeout)
          end

          def missing(since)
            ready, others = workers.partition { |worker| worker.ready? && worker.slot < @size }
            surplus = others.count { |worker| worker.slot >= @size }
            left = ", and #{counted(surplus, "worker")} still #{surplus == 1 ? "leaves" : "leave"}" if surplus.positive?
            ["#{ready.size} of #{@size} workers are ready #{since}#{left}", *@reason].join(": ")
          end

          def unbootable(reason)
            "#{@name} cannot be booted, and gets #{counted(@size, "worker")} when it can: #{reason}"
          end

          def success
            kept = @pool.roster.workers.count(&:draining?)
            more = "; #{counted(kept, "leaving worker")} #{kept == 1 ? "keeps its" : "keep their"} connections for now"
            ready = "#{counted(@size, "worker")} #{@size == 1 ? "is" : "are"} ready"
            [*@name, "#{ready}#{more if kept.positive?}"].join(": ")
          end
        end

        # Kills a worker because an operator wants it (`pando kill`). It is over when the worker is dead.
        class Kill < Task
          ENDS = %w[worker.killed worker.lost worker.failed worker.exited].freeze
          private_constant :ENDS

          def initialize(cluster, pool, worker)
            super(cluster)
            @pool = pool
            @worker = worker
            @pid = worker.pid
            @leaving = worker.leaving?
          end

          def start = @worker.kill(Child::BY_OPERATOR)

          # A worker that leaves before the signal reaches it, or that was called off before it was ready, ends with
          # `worker.exited`.
          def observe(event)
            return unless event[:pid] == @pid && ENDS.include?(event.name)
            return achieve("#{title(@worker)} (pid #{@pid}) has ended") if event.name == "worker.exited"

            at = ", at #{event[:request]}" if event[:request]
            successor = "; another one takes its place" unless @leaving
            achieve("#{title(@worker)} (pid #{@pid}) was killed#{at}#{successor}")
          end
        end

        # Asks a worker where its threads stand (`pando stack`). One that does not answer is looked at from outside.
        class Stack < Task
          # Seconds that the worker has to answer.
          PATIENCE = 1.0
          SILENT = "It does not answer, so it probably holds the interpreter lock in native code. Seen from outside:"

          def initialize(cluster, session, pool, worker)
            super(cluster)
            @session = session
            @pool = pool
            @worker = worker
          end

          def quiet? = true

          def start
            @asked_at = Sys.now
            @worker.ask_for_stacks
          end

          def check
            return if over?
            return give_up("#{title(@worker)} has ended meanwhile") if @worker.gone?
            return tell(@worker.stacks) if @worker.stacks
            return if @examined || Sys.now - @asked_at < PATIENCE

            @examined = true
            @cluster.examiner.examine(@worker.pid) { |text| tell("#{SILENT}\n#{text || "nothing"}") unless over? }
          end

          private

          def tell(text)
            busy = @worker.job
            doing = busy.any? ? "at #{busy[:request]} for #{busy[:seconds]} s" : "idle"
            head = "#{title(@worker)} (pid #{@worker.pid}, generation #{@worker.generation}) is #{doing}."
            @session.gather { [head.sub("the ", ""), *text.lines(chomp: true)].each { |line| say(line) } }
            achieve("")
          end

          def say(line) = @session.say("line", text: line)
        end
      end
    end
  end
end
