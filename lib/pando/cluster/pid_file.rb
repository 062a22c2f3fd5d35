# frozen_string_literal: true

module Pando
  module Cluster
    # The file that holds the monitor's process id while the server runs. Owned by the monitor.
    class PidFile
      # @param path [String, nil] absolute; nil: there is no such file
      def initialize(path)
        @path = path
      end

      # @raise [BootError] another server of this application has the file
      def refuse_second_server
        pid = owner if @path
        return if pid.nil? || pid == Process.pid || !server?(pid)

        raise BootError, "a server is already running (pid #{pid}, file #{@path}): stop it, or choose another pidfile"
      end

      # Writes the file, in one step for its readers.
      # @raise [BootError] another server has it, or it cannot be written
      def claim
        return self unless @path

        refuse_second_server
        write
        self
      rescue SystemCallError => e
        raise BootError, "the pidfile #{@path} cannot be written: #{e.message}"
      end

      # The same in a server that serves, and goes on without the file.
      def claim_if_possible
        claim
      rescue BootError => e
        Events.emit("pidfile.unavailable", reason: e.message)
        self
      end

      # Writes the file again if it has been removed, or if a link on its path leads to another folder by now. Then the
      # file in the previous folder is removed.
      def restore
        return if @path.nil? || owner == Process.pid

        before = @written
        claim_if_possible
        remove_own(before) unless before == @written
      end

      # Removes the file, unless another process has written it since.
      def release
        [@written, @path].uniq.each { |path| remove_own(path) } if @written
        @written = nil
      end

      private

      # Remembers the file without the links of its path, which may lead elsewhere later.
      def write
        file = File.join(File.realpath(File.dirname(@path)), File.basename(@path))
        part = "#{file}.#{Process.pid}"
        File.write(part, "#{Process.pid}\n")
        File.rename(part, file)
        @written = file
      rescue SystemCallError
        remove(part) if part
        raise
      end

      def remove_own(path)
        remove(path) if owner(path) == Process.pid
      end

      def remove(path)
        File.unlink(path)
      rescue SystemCallError
        nil # it has been removed, or its folder
      end

      def owner(path = @path)
        pid = File.read(path, 32).to_i
        pid if pid.positive?
      rescue SystemCallError
        nil
      end

      # The id of a killed server may belong to another process by now, in a container almost certainly: to one of
      # another user, or to a shell or a command of this application. A server of this application has the same working
      # directory.
      def server?(pid) = monitor?(pid) && here?(pid)

      # Everybody may read the name of a process.
      def monitor?(pid)
        File.read("/proc/#{pid}/cmdline").start_with?(Monitor::TITLE)
      rescue SystemCallError
        false # it has just ended, or is hidden
      end

      def here?(pid)
        File.readlink("/proc/#{pid}/cwd") == Dir.pwd
      rescue Errno::EACCES
        true # another user's server: it cannot be examined
      rescue SystemCallError
        false
      end
    end
  end
end
