# frozen_string_literal: true

module Support
  # What /proc says about a process and its descendants.
  class ProcTree
    Entry = Struct.new(:pid, :parent, :state, :title) do
      def descriptors = Dir.children("/proc/#{pid}/fd").size
      def anonymous_pss_kib = File.read("/proc/#{pid}/smaps_rollup")[/^Pss_Anon:\s+(\d+)/, 1].to_i
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

    def monitor = self.class.entry(@root)

    # All direct children, including zombies.
    def children = self.class.children(@root)
    def titled(role) = children.select { |entry| entry.title.start_with?("pando #{role}") }
    def zombies = children.select(&:zombie?)

    # Children of children: none of them may be ours.
    def grandchildren = children.flat_map { |child| self.class.children(child.pid) }

    class << self
      # The slow way, which also finds orphans.
      def all = pids.filter_map { |pid| entry(pid) }

      # Asks the kernel twice, because it may leave one out while another one ends.
      def children(pid)
        seen = pids_below(pid)
        until seen == (again = pids_below(pid))
          seen = again
        end
        seen.filter_map { |child| entry(child) }.select { |entry| entry.parent == pid }
      end

      # Running processes with this working directory, whatever process is their parent now. In a chroot, the path of a
      # process with its own mounts begins with the chroot's.
      def in_folder(folder)
        pids.select { |pid| works_in?(pid, folder) }.filter_map { |pid| entry(pid) }.reject(&:zombie?)
      end

      # @return [Entry, nil] if there is such a process
      def entry(pid)
        state, parent = File.read("/proc/#{pid}/stat")[/\) (.*)\z/m, 1].split
        Entry.new(pid.to_i, parent.to_i, state, File.read("/proc/#{pid}/cmdline").tr("\0", " ").strip)
      rescue Errno::ENOENT, Errno::ESRCH
        nil
      end

      private

      def pids = Dir.children("/proc").grep(/\A\d+\z/)

      # Each thread has children of its own.
      def pids_below(pid)
        threads = Dir.children("/proc/#{pid}/task")
        threads.flat_map { |thread| File.read("/proc/#{pid}/task/#{thread}/children").split }.sort_by(&:to_i)
      rescue Errno::ENOENT, Errno::ESRCH
        []
      end

      def works_in?(pid, folder)
        File.readlink("/proc/#{pid}/cwd").end_with?(folder)
      rescue Errno::ENOENT, Errno::ESRCH, Errno::EACCES
        false
      end
    end
  end
end
