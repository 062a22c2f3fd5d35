# frozen_string_literal: true

require "chaos/roll"
require "support/proc_tree"

module Chaos
  # Checks the processes all the time, in a thread: there are no zombies, unknown processes or orphans, and neither the
  # monitor nor the reactor grows.
  class Watch
    TICK = 0.2
    # Seconds until a zombie must be reaped, or a running process must be known. A process that examines a stuck one is
    # a child of the monitor and has ten.
    LIMITS = { zombie: 4, unknown: 15, stray: 6 }.freeze
    MEMORY = 5 # seconds between two samples of the memory

    # @return [Hash{String => Array<Float>}] MiB of PSS: first, largest and last
    attr_reader :memory

    def initialize(scene)
      @scene = scene
      @since = {}
      @told = {}
      @memory = {}
      @roll_at = @memory_at = 0
    end

    def start = @thread = Thread.new { run }

    def stop
      @stopping = true
      @thread&.join
    end

    private

    def run
      until @stopping
        look
        sleep TICK
      end
    rescue StandardError => e
      @scene.chronicle.violate("the watch failed: #{e.full_message(highlight: false)}")
    end

    def look
      return if @scene.stage.pid.nil? || !@scene.stage.alive?

      all = Support::ProcTree.all
      children = all.select { |entry| entry.parent == @scene.stage.pid }
      ask
      look_at_stall(children)
      odd = odd_ones(all, children)
      (@since.keys - odd).each { |key| @since.delete(key) }
      odd.each { |key| judge(*key) }
      look_at_memory if Chaos.now - @memory_at > MEMORY
    end

    def ask
      return if Chaos.now - @roll_at < 1

      @roll_at = Chaos.now
      @roll = @scene.roll || @roll
    end

    # All processes except serving workers, which may have to wait for their turn.
    def look_at_stall(children)
      waiting = children.reject { |entry| entry.title.match?(/\Apando (worker|jobs|apart) .* (idle|busy)\z/) }
      @scene.stall.look([@scene.stage.pid, *waiting.map(&:pid)])
    end

    # @return [Array<Array(Symbol, Integer)>]
    def odd_ones(all, children)
      family = [@scene.stage.pid, *children.map(&:pid)]
      zombies = all.select { |one| one.zombie? && family.include?(one.parent) && running?(all, one.parent) }
      unknown = children.reject { |one| one.zombie? || @roll.nil? || @roll.pids.include?(one.pid) }
      [*zombies.map { |one| [:zombie, one.pid] }, *unknown.map { |one| [:unknown, one.pid] },
       *strays(family).map { |one| [:stray, one.pid] }]
    end

    def running?(all, pid) = all.find { |one| one.pid == pid }&.state != "T"

    def strays(family)
      @scene.stage.processes.reject { |one| family.include?(one.pid) }
    end

    def judge(kind, pid)
      since, stalled = @since[[kind, pid]] ||= [Chaos.now, @scene.stall.seconds]
      return if Chaos.now - since < LIMITS[kind] + (@scene.stall.seconds - stalled) || @told[[kind, pid]]

      @told[[kind, pid]] = true
      entry = Support::ProcTree.all.find { |one| one.pid == pid }
      @scene.chronicle.violate("#{kind} for more than #{LIMITS[kind]} s: #{entry.to_a.join(" ")}; known: #{@roll}")
    end

    def look_at_memory
      @memory_at = Chaos.now
      { "monitor" => @scene.stage.pid, "reactor" => @roll&.one("reactor") }.compact.each do |role, pid|
        mebibytes = pss(pid) or next
        first, most, = @memory[role] || [mebibytes, mebibytes]
        @memory[role] = [first, [most, mebibytes].max, mebibytes]
      end
    end

    def pss(pid)
      File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s+(\d+)/, 1]&.then { |kib| kib.to_i / 1024.0 }
    rescue SystemCallError
      nil
    end
  end
end
