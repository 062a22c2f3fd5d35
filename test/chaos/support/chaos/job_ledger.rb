# frozen_string_literal: true

require "chaos/tail"

module Chaos
  # Judges jobs by what was ordered and what the nodes write (see QueueRunner): each job is done in time. It is started
  # again only if the process that had it ended, ran out of time to finish it, or was refused a resource by the kernel.
  class JobLedger
    # Seconds until we know of a death from the server's events.
    PATIENCE = 6.0
    # Seconds by which we may learn of a death after its jobs have gone to another process.
    SLACK = 2.0
    # Seconds within which a job is done in any case; delays of the machine are added.
    LIMIT = 60.0
    # Seconds that running jobs have to end, at least: quiet_timeout. The runner's clock starts a little later.
    QUIET = 5.0 - 0.2

    # ended: nil, or :done, :back, :failed.
    Try = Struct.new(:pid, :began, :ended)
    Job = Struct.new(:name, :ordered, :stalled, :tries, :done, :told)
    # A job that was started by one process, then by another.
    Repeat = Struct.new(:job, :before, :again)

    # @return [Hash{String => Integer}] jobs that were started again, by cause
    attr_reader :repeats

    # @param stall [#seconds] @param path [String] of the nodes' journal
    # @param alone [Boolean] whether two nodes never have the same number at the same time
    def initialize(chronicle, path, stall, alone: false)
      @alone = alone
      @chronicle = chronicle
      @tail = Tail.new(path)
      @stall = stall
      @lock = Mutex.new
      @jobs = {}
      @open = []
      @questions = []
      @repeats = Hash.new(0)
    end

    def ordered(name)
      job = Job.new(name, Chaos.now, @stall.seconds, [], false)
      @lock.synchronize { @open << @jobs[name] = job }
    end

    # As of the last judgement.
    # @return [Integer] jobs that are not done
    def open = @lock.synchronize { @open.size }

    def total = @lock.synchronize { @jobs.size }
    def done = total - open

    # @param all [Boolean] judge everything now, because no more events will come
    def judge(all: false)
      read
      ripe, @questions = @questions.partition { |repeat| all || repeat.again.began < Chaos.now - PATIENCE }
      ripe.each { |repeat| judge_repeat(repeat) }
      tell_late
    end

    # Call it when the server has ended.
    # @param queue [#jobs_waiting, #jobs_taken]
    def conclude(queue)
      judge(all: true)
      taken = queue.jobs_taken
      waiting, others = @open.partition { |job| queue.jobs_waiting.include?(job.name) }
      tell("nodes that have ended still have", taken)
      tell("neither done nor waiting:", others.map(&:name) - taken)
      tell("begun and left behind:", waiting.select { |job| left_behind?(job) }.map { |job| describe(job) })
    end

    private

    # Reads what was appended since the last call.
    def read
      @tail.each do |word, name, pid, at, seconds|
        next meet(name, pid, at) if word == "twice"

        job = @lock.synchronize { @jobs[name] }
        next @chronicle.violate("#{word}, and never ordered: #{name} by #{pid}") unless job

        take(word, job, pid.to_i, at.to_f, seconds.to_f)
      end
      @lock.synchronize { @open.reject!(&:done) }
    end

    def tell(what, names)
      @chronicle.violate("#{what} #{names.join(", ")}") if names.any?
    end

    def left_behind?(job)
      last = job.tries.last
      last && last.ended.nil? && !died?(last.pid, Chaos.now)
    end

    def take(word, job, pid, at, seconds)
      return begin_try(job, Try.new(pid, at)) if word == "begun"

      try = job.tries.reverse.find { |one| one.pid == pid && one.ended.nil? } or
        return @chronicle.violate("#{word}, and not begun: #{job.name} by #{pid}")

      try.ended = word.to_sym
      job.done ||= word == "done"
      return unless word == "back" && seconds < QUIET

      @chronicle.violate("#{job.name} was given back by #{pid} after #{seconds} s of quiet, and had #{QUIET}")
    end

    def meet(number, pid, moment)
      @chronicle.violate("node #{number} was there twice at #{moment}: #{pid} met another") if @alone
    end

    def begin_try(job, try)
      @questions << Repeat.new(job, job.tries.last, try) if job.tries.any?
      job.tries << try
    end

    def judge_repeat(repeat)
      cause = cause_of(repeat)
      return @repeats[cause] += 1 if cause

      before, again = [repeat.before, repeat.again].map { |try| "#{try.pid} at #{try.began}" }
      @chronicle.violate("job #{repeat.job.name} was begun by #{before}, #{repeat.before.ended || "not ended"}, " \
                         "and again by #{again}")
    end

    # @return [String, nil]
    def cause_of(repeat)
      case repeat.before.ended
      when :back then "interrupted"
      when :failed then "failed"
      else "node died" if died?(repeat.before.pid, repeat.again.began)
      end
    end

    # A process that stops on request must leave no job behind.
    def died?(pid, moment) = @chronicle.death(pid, moment, SLACK)&.wanted == false

    def tell_late
      late = @lock.synchronize { @open.select { |job| !job.told && late?(job) } }
      late.each { |job| job.told = true }
      tell("not done #{LIMIT} s after they were ordered:", late.map { |job| describe(job) })
    end

    def late?(job)
      !job.done && Chaos.now - job.ordered > LIMIT + (@stall.seconds - job.stalled)
    end

    def describe(job)
      tries = job.tries.map { |try| "by #{try.pid} at #{try.began}" }.join(" and ")
      "#{job.name} (at #{job.ordered.round(3)}, #{tries.empty? ? "never begun" : "begun #{tries}"})"
    end
  end
end
