# frozen_string_literal: true

require "chaos/roll"

module Chaos
  # What happened when, on one clock: our actions, the server's events, and violations. All of it is written to a file.
  # Events that may explain a failed request are kept for a while.
  class Chronicle
    # A lost process, with the time of our action and the time of the server's event.
    Death = Struct.new(:role, :pid, :began, :ended, :suspect, :wanted, keyword_init: true) do
      def overlaps?(from, to, slack) = began - slack <= to && ended + slack >= from
    end
    # A time in which a fault was active.
    Spell = Struct.new(:fault, :began, :ended, :failures)
    ENDS = { "worker.lost" => "worker", "worker.killed" => "worker", "worker.exited" => "worker",
             "worker.failed" => "worker", "reactor.lost" => "reactor", "reactor.killed" => "reactor" }.freeze
    # Reasons of an end that the request may have caused; such a request is not handed to another worker.
    SUSPECT = /signal (SEGV|BUS|ABRT|ILL|FPE|TRAP|SYS)|OOM|timeout|in time/
    MEMORY = 300 # seconds
    # Events that are kept for each generation.
    TOLD = %w[canary.passed canary.unproven canary.failed reload.failed reload.finished].freeze

    def initialize(log, echo: nil)
      @log = log
      @echo = echo
      @lock = Mutex.new
      @deaths = []
      @spells = []
      @violations = []
      @reports = []
      @names = Hash.new(0)
      @signalled = {}
      @told = Hash.new { |told, name| told[name] = {} }
    end

    def violations = @lock.synchronize { @violations.dup }

    # @return [Hash{String => Integer}] number of the server's events by name
    def names = @lock.synchronize { @names.dup }

    # @param pattern [Regexp, nil] for names of events
    # @return [Integer] number of these events so far
    def heard(pattern)
      return 0 unless pattern

      names.sum { |name, count| name.match?(pattern) ? count : 0 }
    end

    # @param pool [String, nil] of Roll::NAMES, or nil for the main one: each has its own numbers
    # @return [Hash, nil] the server's event with this name for this generation
    def told(name, generation, pool: nil) = @lock.synchronize { @told[[name, pool]][generation] }

    # @return [Integer] the highest generation with this event
    def latest(name) = @lock.synchronize { @told[[name, nil]].keys.compact.max || -1 }

    def note(text)
      line = format("%<at>.3f %<text>s", at: Chaos.now, text: text)
      @lock.synchronize { @log.puts(line) }
      @echo&.puts(line)
    end

    def violate(text)
      @lock.synchronize { @violations << text }
      note("VIOLATION #{text}")
    end

    # Records that our next action may end the process.
    def strike(pid) = @lock.synchronize { @signalled[pid] ||= Chaos.now }

    # @param event [Hash] of the server
    def hear(event)
      now = Chaos.now
      @lock.synchronize do
        name = event["event"]
        @names[name] += 1
        @told[[name, pool_of(event)]][event["generation"]] = event if TOLD.include?(name)
        bury(event, ENDS[name], now) if ENDS[name] && event["pid"]
      end
    end

    # @return [Array<Array(Integer, String)>] the pids of workers whose end was reported since the last call, with the
    #   request that each is said to have had
    def new_reports = @lock.synchronize { @reports.slice!(0..) }

    # @return [Spell] open until it is closed
    def begin_spell(fault)
      Spell.new(fault.name, Chaos.now, nil, fault.failures).tap { |spell| @lock.synchronize { @spells << spell } }
    end

    def end_spell(spell) = @lock.synchronize { spell.ended = Chaos.now }

    # @return [Array<Death>] that may have affected a request in this time
    def deaths(from, to, slack) = @lock.synchronize { @deaths.select { |death| death.overlaps?(from, to, slack) } }

    # @return [Death, nil] of this process, if it may have ended before that moment
    def death(pid, by, slack) = @lock.synchronize { @deaths.find { |one| one.pid == pid && one.began - slack <= by } }

    def spells(from, to, slack)
      @lock.synchronize do
        @spells.select { |spell| spell.began - slack <= to && (spell.ended.nil? || spell.ended + slack >= from) }
      end
    end

    private

    def pool_of(event) = (event["pool"] if Roll::NAMES.key?(event["pool"]))

    def bury(event, role, now)
      pid = event["pid"]
      role = Roll.called(role, event["pool"])
      @deaths.shift while @deaths.any? && @deaths.first.ended < now - MEMORY
      @spells.shift while @spells.any? && @spells.first.ended&.<(now - MEMORY)
      @reports << [pid, event["request"]] if Roll::SERVERS.include?(role) && event["request"]
      @deaths << Death.new(role: role, pid: pid, began: @signalled.delete(pid) || now, ended: now,
                           suspect: event["reason"].to_s.match?(SUSPECT), wanted: event["event"].end_with?("exited"))
    end
  end
end
