# frozen_string_literal: true

module Chaos
  # Who lives: what the monitor says of its processes, held against what the kernel says.
  class Roll
    # A process of the server, as its monitor tells of it.
    Entry = Struct.new(:role, :slot, :generation, :pid, :state, keyword_init: true) do
      def serving? = role == "worker" ? %w[idle busy].include?(state) : state == "ready"
    end
    ROLES = %w[reactor mold worker service].freeze

    attr_reader :entries, :workers_wanted

    # @return [Roll, nil] nil: the monitor did not answer
    def self.call(control, stage)
      rows = control.status
      new(rows, stage) if rows&.any? { |row| row.word == "ok" }
    end

    # @param rows [Array<Control::Row>] @param stage [#pid, #cast]
    def initialize(rows, stage)
      @monitor = stage.pid
      @cast = stage.cast
      @workers_wanted = rows.find { |row| row.word == "server" }["workers"].to_i
      @mold = rows.find { |row| row.word == "generation" && row["state"] == "current" }&.[]("mold").to_i
      @entries = rows.select { |row| ROLES.include?(row.word) && row["pid"] }.map do |row|
        Entry.new(role: row.word, slot: row["slot"]&.to_i, generation: row["generation"].to_i, pid: row.pid,
                  state: row["state"])
      end
    end

    def of(role) = entries.select { |entry| entry.role == role }
    def pids = entries.map(&:pid)
    # @return [Integer, nil] the pid of the one that has this role
    def one(role) = of(role).first&.pid
    # @return [Integer] that of the newest worker
    def generation = of("worker").map(&:generation).max.to_i

    # Each slot has a worker that serves, there is a mold to fork more from, and somebody holds the connections.
    def full? = missing.empty?

    # @return [Array<String>] what it takes to be at full strength
    def missing
      slots = (0...workers_wanted).reject { |slot| of("worker").any? { |one| one.slot == slot && at_work?(one) } }
      [*slots.map { |slot| "worker #{slot}" },
       *("mold" unless of("mold").any? { |one| one.pid == @mold && at_work?(one) }),
       *("reactor" unless !@cast.key?("reactor") || of("reactor").any? { |one| at_work?(one) })]
    end

    # Nobody comes and nobody goes.
    def quiet?
      full? && entries.all?(&:serving?) && entries.map(&:role).tally == { **@cast, "worker" => workers_wanted }
    end

    def to_s = entries.map { |one| [one.role, one.slot, one.pid, one.state].compact.join(" ") }.join(", ")

    private

    def at_work?(entry) = entry.serving? && running?(entry.pid)

    def running?(pid)
      state, parent = File.read("/proc/#{pid}/stat")[/\) (.*)\z/m, 1].split
      parent.to_i == @monitor && !%w[Z X T].include?(state)
    rescue SystemCallError
      false
    end
  end
end
