# frozen_string_literal: true

module Support
  # A real control group with a memory limit, below our own. It has version 1, or version 2 if groups below ours may use
  # its memory controller. Needs root.
  class MemoryGroup
    MOUNTS = { "memory" => "/sys/fs/cgroup/memory", nil => "/sys/fs/cgroup" }.freeze
    FILES = { "memory" => %w[memory.limit_in_bytes memory.max_usage_in_bytes memory.oom_control memory.usage_in_bytes],
              nil => %w[memory.max memory.peak memory.events memory.current] }.freeze

    # @return [String, nil] why this machine does not support it; nil: it does
    attr_reader :obstacle
    attr_reader :folder

    # @param limit [Integer] bytes
    def initialize(limit)
      @obstacle = "no control group of this machine takes a limit from us"
      MOUNTS.each_key { |controller| break if make(controller, limit) }
    end

    # @return [Array<String>] a prefix for commands
    def wrapper = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', folder]

    # @return [Integer] number of its processes that the kernel has killed
    def oom_kills = read(@files[2])[/^oom_kill (\d+)$/, 1].to_i

    # @return [Integer, nil] bytes
    def peak = read(@files[1])[/\A\d+/]&.to_i

    # @return [Integer] bytes
    def used = read(@files[3]).to_i

    # Removes the group once it is empty; killed processes may take a moment to exit.
    def remove(patience = 200)
      Dir.rmdir(folder) if @obstacle.nil?
    rescue Errno::EBUSY
      raise if patience.zero?

      IO.select(nil, nil, nil, 0.05)
      remove(patience - 1)
    end

    private

    def make(controller, limit)
      @files = FILES.fetch(controller)
      @folder = File.join(MOUNTS.fetch(controller), ours(controller), "pando-test-#{Process.pid}-#{object_id}")
      Dir.mkdir(folder)
      File.write(File.join(folder, @files[0]), limit.to_s)
      @obstacle = nil
      true
    rescue SystemCallError => e
      @obstacle = e.message
      Dir.rmdir(folder) if folder && File.directory?(folder)
      false
    end

    # The path of our own group at the mount.
    def ours(controller)
      line = File.readlines("/proc/self/cgroup", chomp: true).map { |text| text.split(":", 3) }
                 .find { |number, names,| controller ? names.split(",").include?(controller) : number == "0" }
      raise Errno::ENOENT, "a group of ours" unless line

      line.last
    end

    def read(name)
      File.read(File.join(folder, name))
    rescue SystemCallError
      ""
    end
  end
end
