# frozen_string_literal: true

require "pando/cluster/cold_boot_command"
require "pando/server/allocator"
require "pando/yjit"
require "rbconfig"

module Pando
  class Server
    # How a clean image of this very Ruby, with this very Pando or a new release's, is started.
    #
    # @api private
    module Launch
      SCRIPT = File.expand_path("cold_mold.rb", __dir__)
      LIBRARY = File.expand_path("../..", __dir__)
      EXAMINATION = File.expand_path("examination.rb", __dir__)
      # The path of a loaded extension, see pando/native; the first group is the folder of the load path.
      EXTENSION = %r{\A(.*)/pando/(?:\d+\.\d+/)?pando_ext\.so\z}

      module_function

      # What becomes a mold.
      # @param folders [Array<String>] where its Pando is
      # @return [Cluster::ColdBootCommand]
      # @raise [BootError] it cannot be as it was asked for
      def mold(config, *folders)
        Cluster::ColdBootCommand.new(command(config, *folders), Allocator.new(config.allocator).variables)
      end

      # @return [Array<String>] for exec
      def command(config, *folders) = image("pando/server/cold_mold.rb", config, folders)

      # What becomes of the configuration, see ProbedRelease.
      # @return [Array<String>] for exec
      def probe(config) = image("pando/server/probe.rb", config, [])

      # @return [Array<String>] for exec, before a pid
      def examination
        [RbConfig.ruby, "--disable=gems", "-W0", "-I", LIBRARY, EXAMINATION]
      end

      def image(script, config, folders)
        path = folders.empty? ? load_path : folders.flat_map { |folder| ["-I", folder] }
        library = folders.find { |folder| File.file?(File.join(folder, script)) } || LIBRARY
        [RbConfig.ruby, *jit, *path, File.join(library, script), *config.argv]
      end

      # The flags that put Pando's library on the load path. The extension of an installed gem may live in a
      # folder of its own.
      # @param features [Array<String>] the files that this process has loaded
      # @return [Array<String>]
      def load_path(features = $LOADED_FEATURES)
        [LIBRARY, *features.filter_map { |path| path[EXTENSION, 1] }].uniq.flat_map { |folder| ["-I", folder] }
      end

      # A flag of the monitor's own command line; RUBYOPT and RUBY_YJIT_ENABLE are inherited anyway.
      def jit
        return ["--zjit"] if YJIT.displaced?

        YJIT.enabled? ? ["--yjit"] : []
      end
    end
  end
end
