# frozen_string_literal: true

require "pando/cluster/message"
require "pando/cluster/canary/comparison"
require "pando/cluster/canary/cpu_wait"
require "pando/cluster/canary/memory_check"
require "pando/cluster/canary/silence"
require "pando/counted"
require "pando/cluster/canary/stopwatch"

module Pando
  module Cluster
    module Canary
      # The trial of a generation: its first worker, the canary, serves beside all the old ones, and what it does is
      # compared with what they did. Looks again and again, so that what is bad is ended early; then little chance is
      # left to chance. What is only doubtful goes on, at the most for twice the longest time. When no client of the
      # whole server asks for anything, the canary is judged by what it can try by itself (Worker#try_out).
      #
      # Owned by Evaluation, in the monitor.
      #
      # @api private
      class Trial
        include Counted

        # Seconds between two looks: at first, when much may go wrong, and after that time.
        SOON = 0.05
        LOOK = 0.25
        FIRST = 2.0
        # How often a good one may be taken for a bad one: at any of the looks, and at the end.
        AT_ONCE = 1e-5
        AT_LAST = 0.001
        # Less, against those before and against the present, is not enough to pass before the time is over.
        DOUBT = [0.05, 0.3].freeze
        # Seconds of silence after which the canary tries itself out, and after which it is judged by that; what the
        # server was silent before its canary came counts as well, but for so many seconds it must have lived.
        TRY_OUT = 1.0
        QUIET = 2.0
        ALIVE = 1.0
        # Canaries that somebody else may kill: it says nothing about their mold.
        LOSSES = 3

        # @return [Float] seconds on Sys.now
        attr_reader :due
        # @return [String, nil] what the canary has requested from itself, and how that was answered; nil: it did not
        attr_reader :replayed

        # @param number [Integer] of the generation
        # @param terms [Criteria]
        # @param records [Records]
        # @param heard_at [#call] see Stopwatch
        # @param silence [Silence] since the generation was begun
        def initialize(number, terms, roster, records, memory: MemoryCheck.new(roster), cpu_wait: CPUWait.new,
                       heard_at: :itself.to_proc, now: Sys.now, silence: Silence.new(roster, heard_at, now))
          @number = number
          @terms = terms
          @roster = roster
          @records = records
          @memory = memory
          @cpu_wait = cpu_wait
          @marks = records.marks(number)
          @began_at = @due = now
          @stopwatch = Stopwatch.new(heard_at, now)
          @silence = silence
          @trying = :not_yet
          @losses = 0
          @others_turn = false
        end

        # @return [Symbol, String, nil] :passed, or what is wrong with it; nil: it goes on
        def look(now = Sys.now)
          return if now < @due

          age = now - @began_at
          @due = now + (age < FIRST ? SOON : LOOK)
          steer
          @silent = @silence.read(now, @trying == :asked ? canaries : [])
          judge(age, @stopwatch.read(now))
        end

        # The canary has tried itself out.
        # @param text [String] what it requested, see Payload#work; empty: nothing
        def tried(text)
          @trying = :done
          @replayed = text unless text.empty?
        end

        # Another canary takes the place of one that is gone.
        def begin_anew
          @trying = :not_yet
          @replayed = nil
        end

        # A canary was killed, and not by us.
        # @return [String, nil] what is wrong
        def lose(reason)
          @losses += 1
          "#{@losses} of its first workers were lost, at last: #{reason}" if @losses > LOSSES
        end

        # @param what [String] that its worker serves
        # @return [String, nil] why a canary that has passed has proved little; nil: it has served all it should
        def unproven(what = "request")
          requests = @records.of(@number).requests
          return if requests >= @terms.requests

          come = requests.zero? ? "no #{what} came" : "only #{requests} of #{counted(@terms.requests, what)} came"
          @quiet ? "#{come}, and none for #{QUIET} s" : "#{come} within #{@terms.longest} s"
        end

        # @return [Float] seconds for which it can still go on
        def remaining(now = Sys.now) = [(@terms.longest * 2) - @stopwatch.read(now), 0.0].max

        # For events and `pando status`.
        # @return [Hash]
        def progress(now = Sys.now)
          { requests: @records.of(@number).requests, seconds: (now - @began_at).round(3) }
        end

        private

        def canaries = @roster.ready_workers.select { |worker| worker.generation == @number }

        # The turn is taken by the canary and by the others, for both must serve to be compared: whoever steps
        # back is given requests last.
        def steer
          @others_turn = !@others_turn
          mine, others = @roster.ready_workers.partition { |worker| worker.generation == @number }
          (@others_turn ? mine : others).each { |worker| worker.order(Message.new(:step_back)) }
        end

        # @param age [Float] seconds @param quiet [Float] those in which requests could come
        def judge(age, quiet)
          curve = @records.of(@number)
          before = @records.before(@number)
          comparison = Comparison.new(curve, before, @records.since(@marks), waited: @cpu_wait.per_request(canaries))
          fat(before) || comparison.complaint(AT_ONCE) || conclude(comparison, curve.requests, age, quiet)
        end

        def fat(before)
          canaries.filter_map { |worker| @memory.complaint(worker, before) }.first
        end

        # Not while a canary stands still that nobody asks for anything: it may just catch its breath, or hang.
        def conclude(comparison, requests, age, quiet)
          return if canaries.any?(&:still?)
          return at_last(comparison, quiet >= @terms.longest * 2) if quiet >= @terms.longest
          return unless @terms.enough?(requests, age) || silent?(age)

          :passed unless stuck || comparison.complaint(*DOUBT) || comparison.hopeless
        end

        # Nobody asks for anything, and the canary has tried what it can.
        def silent?(age)
          @trying = :asked if @trying == :not_yet && @silent >= TRY_OUT && canaries.first&.order(Message.new(:try_out))
          @quiet = @trying == :done && @silent >= QUIET && age >= ALIVE
        end

        def at_last(comparison, last)
          complaint = comparison.complaint(AT_LAST) || comparison.hopeless
          return complaint if complaint
          return stuck || :passed if last

          :passed unless stuck || comparison.complaint(*DOUBT)
        end

        # What it is at may never end; or there is no canary, since each one leaves.
        def stuck
          return "no worker of it stays" if canaries.empty?

          worker = canaries.find(&:engaged?) or return
          job = worker.job
          "it has been at #{job[:request]} for #{job[:seconds]} s" unless job.empty?
        end
      end
    end
  end
end
