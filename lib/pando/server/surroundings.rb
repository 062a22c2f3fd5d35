# frozen_string_literal: true

module Pando
  class Server
    # The folder that the monitor works in and hands down to the molds it boots, with the Gemfile and lock file in it.
    # A release folder is often named by a symbolic link that leads elsewhere by now.
    #
    # @api private
    class Surroundings
      GEMFILE = "BUNDLE_GEMFILE"
      LOCKFILE = "BUNDLE_LOCKFILE" # set by Bundler from version 4 on
      private_constant :GEMFILE, :LOCKFILE

      # Goes there if the folder that we are in is no more.
      # @param directory [String]
      # @return [nil]
      def self.find(directory)
        Dir.pwd
        nil
      rescue SystemCallError
        begin
          Dir.chdir(directory)
        rescue SystemCallError
          nil # whoever boots will say so
        end
        nil
      end

      # @param directory [String] as it was given, links and all
      def initialize(directory)
        @directory = directory
      end

      # For as long as the block runs, or starts others.
      # @yieldparam before [String] the folder that we come from
      # @raise [SystemCallError] it is not there
      def within
        folder = self.folder
        files = [GEMFILE, LOCKFILE].to_h { |name| [name, ENV.fetch(name, nil)] }
        enter
        yield folder
      ensure
        leave(folder, files) if folder
      end

      # For good.
      # @raise [SystemCallError] it is not there
      def enter
        before = folder
        Dir.chdir(@directory)
        gemfile, lockfile = ENV.values_at(GEMFILE, LOCKFILE)
        ENV[GEMFILE] = moved_file(gemfile, before) if gemfile
        ENV[LOCKFILE] = moved_lockfile(lockfile, before) if lockfile
      end

      # Bundler, for one, names the Gemfile by its real path, which is that of the old release.
      # @param path [String]
      # @param before [String] the folder that we come from
      # @return [String] where that is now
      def moved(path, before)
        return path unless inside?(before, path)

        there = File.join(Dir.pwd, path.delete_prefix("#{before}/"))
        File.exist?(there) ? there : path
      end

      private

      # Deployments that put each release in the same place remove the one that we are in.
      def folder
        Dir.pwd
      rescue Errno::ENOENT
        File.readlink("/proc/self/cwd").delete_suffix(" (deleted)") # proc(5)
      end

      # Back to where we were, if that is still there.
      def leave(folder, files)
        Dir.chdir(folder)
        ENV.update(files)
      rescue SystemCallError
        nil # the old release has been removed: what is to be booted can only be the new one
      end

      # By the name that its folder had, which may be gone.
      def moved_file(path, before)
        there = moved(path, before)
        return there if File.file?(there)

        same = File.join(Dir.pwd, File.basename(path))
        File.file?(same) ? same : path
      end

      # The old release's says nothing of the new one. Without one Bundler takes what is beside the Gemfile.
      # @return [String, nil]
      def moved_lockfile(path, before)
        there = moved_file(path, before)
        there if inside?(Dir.pwd, there) || !inside?(before, there)
      end

      def inside?(folder, path) = path.start_with?("#{folder}/")
    end
  end
end
