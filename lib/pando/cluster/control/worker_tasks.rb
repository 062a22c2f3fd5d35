# frozen_string_literal: true

require "pando/cluster/control/tasks"

module Pando
  module Cluster
    class Control
      module Tasks
        # Kills a worker because an operator wants it (`pando kill`). It is over when the worker is dead; the monitor
        # replaces it as it does any worker that dies.
        class Kill < Task
          # @param worker [Child] that has a process
          def initialize(cluster, pool, worker)
            super(cluster)
            @pool = pool
            @worker = worker
            @pid = worker.pid
          end

          def start = @worker.kill(Child::BY_OPERATOR)

          def observe(event)
            return unless event[:pid] == @pid && %w[worker.killed worker.lost worker.failed].include?(event.name)

            at = ", at #{event[:request]}" if event[:request]
            achieve("#{title(@worker)} (pid #{@pid}) was killed#{at}; another one takes its place")
          end
        end

        # Asks a worker where its threads stand (`pando stack`). One that does not answer is looked at from outside.
        class Stack < Task
          # Seconds that the worker has to answer.
          PATIENCE = 1.0
          SILENT = "It does not answer, so it probably holds the interpreter lock in native code. Seen from outside:"

          # @param session [Session] of the client
          # @param worker [Child] that has a process
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
