# frozen_string_literal: true

module Pando
  class Server
    # The release directory: the working directory of the monitor and the molds that it boots, with the Gemfile and lock
    # file in it. A release directory is often named by a symbolic link that may lead elsewhere by now. Made in the
    # monitor.
    class ReleaseDirectory
      GEMFILE = "BUNDLE_GEMFILE"
      LOCKFILE = "BUNDLE_LOCKFILE" # set by Bundler from version 4 on

      # Goes to the directory if the current one was removed.
      def self.find(directory)
        Dir.pwd
        nil
      rescue SystemCallError
        begin
          Dir.chdir(directory)
        rescue SystemCallError
          nil # the next cold boot reports it
        end
        nil
      end

      def initialize(directory)
        @directory = directory
      end

      # Goes there for the time of the block.
      # @yieldparam before [String] the former directory
      def within
        folder = self.folder
        files = [GEMFILE, LOCKFILE].to_h { |name| [name, ENV.fetch(name, nil)] }
        enter
        yield folder
      ensure
        leave(folder, files) if folder
      end

      # Goes there for good.
      # @raise [SystemCallError] it is not there
      def enter
        before = folder
        Dir.chdir(@directory)
        gemfile, lockfile = ENV.values_at(GEMFILE, LOCKFILE)
        ENV[GEMFILE] = moved_file(gemfile, before) if gemfile
        ENV[LOCKFILE] = moved_lockfile(lockfile, before) if lockfile
      end

      # Bundler names the Gemfile by its real path, which is that of the old release.
      # @return [String] where that is now
      def moved(path, before)
        return path unless inside?(before, path)

        there = File.join(Dir.pwd, path.delete_prefix("#{before}/"))
        File.exist?(there) ? there : path
      end

      private

      # Some deployments put each release in the same place, and remove the current directory.
      def folder
        Dir.pwd
      rescue Errno::ENOENT
        File.readlink("/proc/self/cwd").delete_suffix(" (deleted)") # proc(5)
      end

      # Goes back, if the former directory still exists.
      def leave(folder, files)
        Dir.chdir(folder)
        ENV.update(files)
      rescue SystemCallError
        nil # the old release was removed: only the new one can boot
      end

      # Finds the file under its former name, whose folder may be gone.
      def moved_file(path, before)
        there = moved(path, before)
        return there if File.file?(there)

        same = File.join(Dir.pwd, File.basename(path))
        File.file?(same) ? same : path
      end

      # The lock file of the old release does not fit the new one. Without one Bundler takes the file beside the
      # Gemfile.
      # @return [String, nil]
      def moved_lockfile(path, before)
        there = moved_file(path, before)
        there if inside?(Dir.pwd, there) || (File.file?(there) && !inside?(before, there))
      end

      def inside?(folder, path) = path.start_with?("#{folder}/")
    end
  end
end
