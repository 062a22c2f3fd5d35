# frozen_string_literal: true

module Pando
  class Server
    # The folder that the monitor works in and hands down to the molds it boots, and the Gemfile in it. A
    # release folder is often named by a symbolic link that leads elsewhere by now.
    #
    # @api private
    class Surroundings
      GEMFILE = "BUNDLE_GEMFILE"

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
      # @raise [SystemCallError] it is not there
      def within
        folder = self.folder
        gemfile = ENV.fetch(GEMFILE, nil)
        enter
        yield
      ensure
        leave(folder, gemfile) if folder
      end

      # For good.
      # @raise [SystemCallError] it is not there
      def enter
        before = folder
        Dir.chdir(@directory)
        gemfile = ENV.fetch(GEMFILE, nil)
        ENV[GEMFILE] = moved(gemfile, before) if gemfile
      end

      private

      # Deployments that put each release in the same place remove the one that we are in.
      def folder
        Dir.pwd
      rescue Errno::ENOENT
        File.readlink("/proc/self/cwd").delete_suffix(" (deleted)") # proc(5)
      end

      # Back to where we were, if that is still there.
      def leave(folder, gemfile)
        Dir.chdir(folder)
        ENV[GEMFILE] = gemfile
      rescue SystemCallError
        nil # the old release has been removed: what is to be booted can only be the new one
      end

      # Bundler names the Gemfile by its real path, which is that of the old release, by the name that its folder had.
      def moved(gemfile, before)
        return here(gemfile.delete_prefix("#{before}/")) || gemfile if gemfile.start_with?("#{before}/")

        (here(File.basename(gemfile)) unless File.file?(gemfile)) || gemfile
      end

      def here(name)
        path = File.join(Dir.pwd, name)
        path if File.file?(path)
      end
    end
  end
end
