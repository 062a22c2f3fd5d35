# frozen_string_literal: true

module Support
  # What /proc says about a process and its descendants.
  class ProcTree
    Entry = Struct.new(:pid, :parent, :state, :title) do
      def descriptors = Dir.children("/proc/#{pid}/fd").size
      def pss_kib = File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s+(\d+)/, 1].to_i
      def zombie? = state == "Z"

      # The targets of the descriptors, without the numbers that distinguish sockets from each other.
      # @return [Hash{String => Integer}]
      def descriptor_kinds
        Dir.children("/proc/#{pid}/fd").filter_map do |fd|
          File.readlink("/proc/#{pid}/fd/#{fd}").sub(/:\[\d+\]\z/, "")
        rescue Errno::ENOENT
          nil
        end.tally
      end
    end

    def initialize(root)
      @root = root
    end

    def monitor = all.find { |entry| entry.pid == @root }

    # All direct children, including zombies.
    def children = all.select { |entry| entry.parent == @root }
    def titled(role) = children.select { |entry| entry.title.start_with?("pando #{role}") }
    def zombies = children.select(&:zombie?)

    # Children of children: none of them may be ours.
    def grandchildren
      pids = children.map(&:pid)
      all.select { |entry| pids.include?(entry.parent) }
    end

    def self.all
      Dir.children("/proc").grep(/\A\d+\z/).filter_map do |pid|
        stat = File.read("/proc/#{pid}/stat")
        state, parent = stat[/\) (.*)\z/m, 1].split
        title = File.read("/proc/#{pid}/cmdline").tr("\0", " ").strip
        Entry.new(pid.to_i, parent.to_i, state, title)
      rescue Errno::ENOENT, Errno::ESRCH
        nil
      end
    end

    # Running processes with this working directory, whatever process is their parent now. In a chroot, the path of a
    # process with its own mounts begins with the chroot's.
    def self.in_folder(folder)
      all.reject(&:zombie?).select do |entry|
        File.readlink("/proc/#{entry.pid}/cwd").end_with?(folder)
      rescue Errno::ENOENT, Errno::ESRCH, Errno::EACCES
        false
      end
    end

    private

    def all = self.class.all
  end
end
