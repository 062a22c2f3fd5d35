# frozen_string_literal: true

require "pando/cluster/canary/comparison"
require "pando/cluster/canary/memory_check"
require "pando/cluster/canary/stopwatch"
require "pando/sys/memory"
require "pando/sys/scheduler"

module Pando
  module Cluster
    module Canary
      # Checks a generation at intervals until it has passed or is found wanting: as a Trial or as a RolloutWatch.
      # Owned by Evaluation, in the monitor.
      # @abstract
      class Observation
        attr_reader :due

        def initialize(number, terms, roster, records, memory: MemoryCheck.new(roster), heard_at: :itself.to_proc,
                       now: Sys.now)
          @number = number
          @terms = terms
          @roster = roster
          @records = records
          @memory = memory
          @began_at = @due = now
          @stopwatch = Stopwatch.new(heard_at, now)
        end

        # @return [Symbol, String, nil] :passed, or what is wrong with it; nil: it continues
        def look(now = Sys.now)
          return if now < @due

          age = now - @began_at
          @due = now + pause(age)
          check(now, age, @stopwatch.read(now))
        end

        # @return [Float] the most seconds that it can still take
        def remaining(now = Sys.now) = [limit - @stopwatch.read(now), 0.0].max

        # For events and `pando status`.
        def progress(now = Sys.now)
          { requests: @records.of(@number).requests, seconds: (now - @began_at).round(3) }
        end

        private

        def workers = @roster.ready_workers.select { |worker| worker.generation == @number }

        def oversized(before) = workers.filter_map { |worker| @memory.complaint(worker, before) }.first
      end

      # The trial of a generation: its first worker, the canary, serves beside all the old ones, and its figures are
      # compared with theirs. Frequent checks end the trial of a bad generation early; they leave less to chance than
      # the one at the end. In doubt it continues, for at most twice the longest time. If no client of the whole server
      # sends requests, the canary is judged by requests that it sends to itself (Worker#try_out).
      class Trial < Observation
        include Wording

        # Seconds between two checks: during the first seconds, when much may go wrong, and later.
        SOON = 0.05
        LOOK = 0.25
        FIRST = 2.0
        # How often a good generation may be taken for a bad one: at any of the checks, and at the end.
        AT_ONCE = 1e-5
        AT_LAST = 0.001
        # Differences this likely, against those before and against the present, keep it from passing early.
        DOUBT = [0.05, 0.3].freeze
        # Seconds of silence after which the canary sends itself requests, and after which it is judged by them. Silence
        # before the canary came counts too, but the canary must have lived for so many seconds.
        TRY_OUT = 1.0
        QUIET = 2.0
        ALIVE = 1.0
        # Canaries that may be killed from outside, which says nothing about their mold.
        LOSSES = 3

        # @return [String, nil] what the canary has requested from itself, and the answers; nil: nothing
        attr_reader :replayed

        def initialize(number, terms, roster, records, cpu_wait: CPUWait.new, heard_at: :itself.to_proc, now: Sys.now,
                       silence: Silence.new(roster, heard_at, now), **more)
          super(number, terms, roster, records, heard_at: heard_at, now: now, **more)
          @cpu_wait = cpu_wait
          @marks = records.marks(number)
          @silence = silence
          @trying = :not_yet
          @losses = 0
          @others_turn = false
        end

        # The canary has sent itself requests.
        # @param text [String] what it requested, see HTTP::SelfTest; empty: nothing
        def tried(text)
          @trying = :done
          @replayed = text unless text.empty?
        end

        # Another canary takes the place of one that is gone.
        def begin_anew
          @trying = :not_yet
          @replayed = nil
        end

        # A canary was killed from outside.
        # @return [String, nil] what is wrong
        def lose(reason)
          @losses += 1
          "#{@losses} of its first workers were lost, at last: #{reason}" if @losses > LOSSES
        end

        # @param what [String] that its worker serves
        # @return [String, nil] why a canary that has passed has proved little; nil: it has served as much as required
        def unproven(what = "request")
          requests = @records.of(@number).requests
          return if requests >= @terms.requests

          come = requests.zero? ? "no #{what} came" : "only #{requests} of #{counted(@terms.requests, what)} came"
          @quiet ? "#{come}, and none for #{QUIET} s" : "#{come} within #{@terms.longest} s"
        end

        private

        def pause(age) = age < FIRST ? SOON : LOOK
        def limit = @terms.longest * 2

        # @param age [Float] seconds @param listened [Float] those in which requests could come
        def check(now, age, listened)
          alternate
          @silent = @silence.read(now, @trying == :asked ? workers : [])
          curve = @records.of(@number)
          before = @records.before(@number)
          comparison = Comparison.new(curve, before, @records.since(@marks), waited: @cpu_wait.per_request(workers))
          oversized(before) || comparison.complaint(AT_ONCE) || conclude(comparison, curve.requests, age, listened)
        end

        # The canary and the others take turns, since both must serve to be compared. One that steps back gets requests
        # last.
        def alternate
          @others_turn = !@others_turn
          mine, others = @roster.ready_workers.partition { |worker| worker.generation == @number }
          (@others_turn ? mine : others).each { |worker| worker.order(Message.new(:step_back)) }
        end

        # Not while an idle canary shows no heartbeat: it may only be slow, or it may hang.
        def conclude(comparison, requests, age, listened)
          return if workers.any?(&:still?)
          return at_last(comparison, listened >= limit) if listened >= @terms.longest
          return unless @terms.enough?(requests, age) || silent?(age)

          :passed unless stuck || comparison.complaint(*DOUBT) || comparison.hopeless
        end

        def at_last(comparison, last)
          complaint = comparison.complaint(AT_LAST) || comparison.hopeless
          return complaint if complaint
          return stuck || :passed if last

          :passed unless stuck || comparison.complaint(*DOUBT)
        end

        # No client sends requests, and the canary has tried what it can.
        def silent?(age)
          @trying = :asked if @trying == :not_yet && @silent >= TRY_OUT && workers.first&.order(Message.new(:try_out))
          @quiet = @trying == :done && @silent >= QUIET && age >= ALIVE
        end

        # Its request may never end; or there is no canary, since each one leaves.
        def stuck
          return "no worker of it stays" if workers.empty?

          job = workers.find(&:engaged?)&.job
          "it has been at #{job[:request]} for #{job[:seconds]} s" if job&.any?
        end
      end

      # Watches all workers after the rollout, while the old mold is kept: they may show what one worker has not. They
      # are compared with the old workers at the same age. No old worker serves any more: only grave differences count.
      class RolloutWatch < Observation
        LOOK = 0.5
        CHANCE = 1e-6
        CRASHES = 0.005
        # Workers that may fail at their start.
        FAILURES = 2

        # @param before [Curve] of those that it has replaced
        def initialize(number, terms, roster, records, before:, size:, **more)
          super(number, terms, roster, records, **more)
          @before = before
          @size = size
          @failures = 0
        end

        # A worker did not come up.
        def fail(reason)
          @failures += 1
          reason if @failures >= FAILURES
        end

        private

        def pause(_age) = LOOK
        def limit = @terms.longest

        def check(_now, age, listened)
          curve = @records.of(@number)
          comparison = Comparison.new(curve, @before)
          complaint = comparison.crashing(CRASHES) || comparison.complaint(CHANCE)
          # there may be hardly a request from before to compare with
          complaint ||= comparison.hopeless if curve.requests >= Comparison::ENOUGH
          complaint ||= oversized(@before)
          return complaint if complaint || workers.any?(&:still?)

          :passed if listened >= @terms.longest || @terms.enough?(curve.requests, age, @size)
        end
      end

      # How long the workers on trial have waited for a CPU, per request. On a busy machine that is a part of each
      # request's time, comes in bursts, and says nothing about a generation.
      class CPUWait
        def initialize(source = Sys::Scheduler)
          @source = source
          @first = {}.compare_by_identity
        end

        # Counts the wait since the first call with each worker.
        def per_request(workers)
          waited = workers.sum do |worker|
            delay = @source.run_delay(worker.pid)
            delay ? delay - (@first[worker] ||= delay) : 0
          end
          waited / [workers.sum(&:requests), 1].max.to_f
        end
      end

      # The time since a request last began or ended in any worker, although requests could come. On a silent server
      # nothing can be learned about a canary by waiting. Measured from the moment at which a generation begins.
      class Silence
        def initialize(roster, heard_at, now)
          @roster = roster
          @heard_at = heard_at
          @since = now
          @seen = activity([])
        end

        # A worker that was not in the last reading does not count.
        # @param except [Array<Child>] workers that are busy with requests of their own
        def read(now, except = [])
          activity = activity(except)
          changed = activity.any? { |worker, state| @seen.fetch(worker, state) != state }
          @since = now if changed || deaf?(now)
          @seen = activity
          now - @since
        end

        private

        def activity(except)
          (@roster.workers - except).to_h { |worker| [worker, [worker.requests, worker.row.busy_since]] }
                                    .compare_by_identity
        end

        # While the reactor stands still, or there is none, clients wait and cannot be seen.
        def deaf?(now)
          heard = @heard_at.call(now)
          heard.nil? || now - heard > Stopwatch::GAP
        end
      end
    end
  end
end
