# frozen_string_literal: true

require "pando/errors"
require "pando/fork_safety/audit/live_thread"
require "pando/fork_safety/audit/timer_task"
require "pando/fork_safety/libraries/timer_tasks"
require "pando/sys"

module Pando
  class Server
    # Finds threads that a refork would lose, and whether they come back in forked processes by themselves. A running
    # Concurrent::TimerTask counts as a thread.
    #
    # A process inherits from its forker the list of threads that lived there. A thread that lives or begins again in a
    # worker of that lineage has come back, and is no reason against a later refork. Only threads that were in no forker
    # yet are unknown: the first worker of the next generation tries them, see docs/audit.md.
    #
    # Made by ForkCare in the mold of a cold boot, and inherited by all that is forked from it. It reports to the
    # monitor (Cluster::Generations::LostThreads), which decides.
    class ThreadWatch
      # The configuration forbids this boot.
      class Refused < Pando::Error; end

      # A thread that lived in the forker: its description, and the requests of a worker until it must have come back.
      Awaited = Struct.new(:origin, :advice, :requests)

      # Threads of one origin that have begun in a worker: the requests before the first, and the number of threads.
      Begun = Struct.new(:earliest, :times) do
        # @return [Integer] requests until one begins
        def interval(requests) = [earliest + 1, (requests.fdiv(times).ceil if times > 1)].compact.max
      end

      # Requests that a thread has at least to come back, if the canary's criteria name no number.
      LEAST = 20
      # A child has so many times the requests after which its forker started the thread.
      TIMES = 3
      MOST = 2000
      # In generation 0, which is not refused any more, the factor on LEAST.
      GENERATION_0_FACTOR = 5
      # Threads that are remembered.
      LIMIT = 1000
      # Seconds between two checks whether a worker still has a thread that is refused.
      INTERVAL = 0.5
      # Seconds that a thread has to end after a hook has stopped it.
      SETTLE = 0.1
      PAUSE = 0.005

      def initialize(config)
        policy = config.fork_safety_threads
        @policy = policy.is_a?(Hash) ? policy[:otherwise] : policy
        @allowed = policy.is_a?(Hash) ? policy[:allow] : []
        @least = config.rollout_canary.is_a?(Hash) ? config.rollout_canary[:requests] : LEAST
        @handed = {}
        @lineage = {} # key of each thread that an ancestor had when it forked => whether it has come back
        @awaited = {}
        @refused = {} # key of each thread that the monitor knows to be lost => whether this worker has it
        @begun = {}
        @news = []
        @next_check = 0.0
      end

      # In the mold of a cold boot, when the application is loaded.
      def loaded
        @loaded = current
      end

      # In the mold of a cold boot, when it is almost ready.
      def boot
        one = current.first if @policy == :fail
        raise Refused, "#{one.origin.message}. #{one.advice} (refused by fork_safety threads:)" if one
      end

      # In the process that forks, after the user's hooks.
      def before_fork(role, of)
        return promote(role) if role.role == :worker && of == :mold
        return unless @loaded

        lost = @loaded.select(&:alive?)
        @loaded = nil
        await(lost.to_h { |one| [one.key, Awaited.new(one.origin, one.advice, @least * GENERATION_0_FACTOR)] })
      end

      # In the new process, before the user's hooks.
      def after_fork(role)
        await(@handed)
        @handed = {}
        @loaded = nil
        @begun = {}
        @news = []
        @refused.transform_values! { false } # a thread that is lost is not in a new process
        @worker = role
        role.role == :worker && @policy != :allow ? listen : ignore
      end

      # In a new worker, after the user's hooks: threads that live by now have come back.
      def born(worker) = living.each { |key| come_back(worker, key) }

      # In a worker, between two requests.
      def tick(worker)
        come_back(worker, @news.shift) until @news.empty?
        report_missing(worker) if @awaited.any?
        compare(worker) if @refused.any? && Sys.now >= @next_check
      end

      # The monitor says that this thread is lost.
      # @param key [String] see ThreadOrigin.key
      def lost(worker, key)
        @refused[key] = nil
        compare(worker)
      end

      private

      # Finds the threads that were in no ancestor: whether they come back is not known. If the monitor knows that they
      # do not, it discards the new generation.
      def promote(role)
        @handed = {}
        untried = settle
        return if untried.empty?

        @handed = untried.to_h { |one| [one.key, awaited(one)] }
        report(role, :thread_tried, *@handed.each_value) unless @policy == :report
      end

      # A thread that a hook has stopped may take a moment to end.
      def settle
        deadline = Sys.now + SETTLE
        untried = list
        while untried.any? && Sys.now < deadline
          sleep(PAUSE)
          untried = list
        end
        untried
      end

      def list = current.reject { |one| @lineage.key?(one.key) }

      # Threads without an excuse, one of each origin.
      def current
        return [] if @policy == :allow

        all.reject { |one| excused?(one) }.uniq(&:key)
      end

      def excused?(thread) = !thread.excuse.nil? || @allowed.any? { |pattern| thread.origin.match?(pattern) }

      def awaited(one)
        requests = @begun[one.key]&.interval(@worker.requests) || 1
        Awaited.new(one.origin, one.advice, (requests * TIMES).clamp(@least, [MOST, @least].max))
      end

      def await(threads)
        threads.each do |key, awaited|
          next if @lineage.key?(key)

          @lineage[key] = false
          @awaited[key] = awaited
        end
      end

      def come_back(worker, key)
        return if @lineage.fetch(key, true)

        @lineage[key] = true
        @awaited.delete(key)
        worker.payload.report_thread(worker, :thread_back, key)
      end

      def report_missing(worker)
        missing = @awaited.select { |_, one| worker.requests >= one.requests }
        missing.each_key { |key| @awaited.delete(key) }
        report(worker, :thread_missing, *missing.each_value)
      end

      # Reports to the monitor which refused threads have come or gone.
      def compare(worker)
        @next_check = Sys.now + INTERVAL
        now = living
        @refused.each do |key, held|
          holds = now.include?(key)
          next if holds == held

          @refused[key] = holds
          worker.payload.report_thread(worker, holds ? :thread_held : :thread_gone, key)
        end
      end

      def living = all.map(&:key).uniq

      def all = ForkSafety::Audit::LiveThread.all + ForkSafety::Audit::TimerTask.all

      def report(role, kind, *threads)
        threads.each do |one|
          text = [one.origin.key, one.origin.message, one.advice].join("\n")
          role.payload.report_thread(role, kind, text)
        end
      end

      # From now on, notes the threads and timer tasks that begin.
      def listen
        tracer.enable
        ForkSafety::Libraries::TimerTasks.listener = ->(task) { note(ForkSafety::Audit::TimerTask, task) }
      end

      def ignore
        @tracer&.disable
        ForkSafety::Libraries::TimerTasks.listener = nil
      end

      # Called in each new thread. It is no iseq event, so compiled code stays compiled.
      def tracer
        @tracer ||= TracePoint.new(:thread_begin) { note(ForkSafety::Audit::LiveThread, Thread.current) }
      end

      def note(kind, begun)
        key = kind.new(begun).key
        count = @begun[key] ||= Begun.new(@worker.requests, 0) if @begun.size < LIMIT || @begun.key?(key)
        count.times += 1 if count
        @news << key if @lineage[key] == false
      rescue StandardError
        nil # it is the application's thread
      end
    end
  end
end
