# frozen_string_literal: true

module Chaos
  # The running processes: the monitor's status, compared with the kernel's.
  class Roll
    # A process of the server in the monitor's status.
    Entry = Struct.new(:role, :slot, :generation, :pid, :state, keyword_init: true) do
      def serving? = WORKERS.include?(role) ? %w[idle busy].include?(state) : state == "ready"
    end
    # One kind of workers: the names of their role and their mold's here, their target number, the mold that forks, and
    # whether it was released.
    Pool = Struct.new(:worker, :mold, :slots, :forker, :released) do
      # @return [Hash{String => Integer}] processes by role in a steady state
      def cast = { worker => slots, **(released ? {} : { mold => 1 }) }
    end

    ROLES = %w[reactor mold worker service].freeze
    # The pool of job nodes, and the one for some paths.
    NODES = "jobs"
    APART = "apart"
    # The names of their roles here, which are the same as in the main pool.
    NAMES = { NODES => { "worker" => "node", "mold" => "node mold" },
              APART => { "worker" => "apart worker", "mold" => "apart mold" } }.freeze
    # The roles of workers that serve requests; and of all workers.
    SERVERS = ["worker", "apart worker"].freeze
    WORKERS = [*SERVERS, "node"].freeze

    # @param pool [String, nil]
    # @return [String] the role's name here
    def self.called(role, pool) = NAMES.fetch(pool, {}).fetch(role, role)

    attr_reader :entries

    # @return [Roll, nil] nil: the monitor did not answer
    def self.call(control, stage)
      rows = control.status
      new(rows, stage) if rows&.any? { |row| row.word == "ok" }
    end

    # @param rows [Array<Control::Row>] @param stage [#pid, #cast]
    def initialize(rows, stage)
      @monitor = stage.pid
      @cast = stage.cast
      @pools = pools(rows)
      @entries = rows.select { |row| ROLES.include?(row.word) && row["pid"] }.map do |row|
        Entry.new(role: role(row), slot: row["slot"]&.to_i, generation: row["generation"].to_i, pid: row.pid,
                  state: row["state"])
      end
    end

    def of(role) = entries.select { |entry| entry.role == role }
    def pids = entries.map(&:pid)
    # @return [Integer, nil] pid of the process with this role
    def one(role) = of(role).first&.pid
    # @return [Integer] generation of the newest worker; with several pools, of the pool where it is lowest
    def generation = @pools.map { |pool| of(pool.worker).map(&:generation).max.to_i }.min

    # Each slot has a serving worker, there is a mold that can fork more, and a process holds the connections.
    def full? = missing.empty?

    # @return [Array<String>] what is missing for full strength
    def missing
      [*@pools.flat_map { |pool| missing_in(pool) },
       *("reactor" unless !@cast.key?("reactor") || of("reactor").any? { |one| at_work?(one) })]
    end

    # No process is starting or exiting.
    def quiet?
      cast = @pools.reduce(@cast) { |all, pool| { **all, **pool.cast } }
      full? && entries.all?(&:serving?) && entries.map(&:role).tally == cast
    end

    def to_s = entries.map { |one| [one.role, one.slot, one.pid, one.state].compact.join(" ") }.join(", ")

    private

    # If there is a single pool, the status does not name it.
    def pools(rows)
      rows = { "server" => [], "pool" => [], "generation" => [], **rows.group_by(&:word) }
      named = rows["pool"].empty? ? rows["server"] : rows["pool"]
      named.map do |row|
        forker = rows["generation"].find { |one| one["pool"] == row["name"] && one["state"] == "current" }
        Pool.new(*%w[worker mold].map { |word| Roll.called(word, row["name"]) }, row["workers"].to_i,
                 forker&.[]("mold").to_i, forker&.[]("released") == "true")
      end
    end

    def role(row) = Roll.called(row.word, row["pool"])

    def missing_in(pool)
      slots = (0...pool.slots).reject { |slot| of(pool.worker).any? { |one| one.slot == slot && at_work?(one) } }
      [*slots.map { |slot| "#{pool.worker} #{slot}" },
       *(pool.mold unless pool.released || of(pool.mold).any? { |one| one.pid == pool.forker && at_work?(one) })]
    end

    def at_work?(entry) = entry.serving? && running?(entry.pid)

    def running?(pid)
      state, parent = File.read("/proc/#{pid}/stat")[/\) (.*)\z/m, 1].split
      parent.to_i == @monitor && !%w[Z X T].include?(state)
    rescue SystemCallError
      false
    end
  end
end
