# frozen_string_literal: true

require "rbconfig"

module Pando
  # Tells the application's own files from those of gems, of Ruby and of Pando. Used by the doctor, and by a process
  # that tells why it has failed.
  class CodePlaces
    OWN_LIBRARY = "#{File.expand_path("..", __dir__)}/".freeze
    # Code between a require or a constant and the file that is loaded for it.
    LOADERS = Regexp.union(
      /\A<internal:/, "/rubygems/", "/bundler/", "/bundled_gems.rb", "/zeitwerk/", "/bootsnap/", "/polyglot",
      "/active_support/dependencies"
    ).freeze

    # @return [Array<String>] prefixes of the application's paths, and of other paths, perhaps below the former
    attr_reader :own, :foreign

    # @param root [String] code may have been loaded by this name or by the folder's real one
    def initialize(root)
      roots = names(root)
      @own = roots.map { |name| "#{name.chomp("/")}/" }.freeze
      @foreign = [*Gem.path, *RbConfig::CONFIG.values_at("rubylibdir", "sitelibdir", "vendorlibdir"),
                  *roots.map { |name| File.join(name, "vendor", "bundle") }, bundle]
                 .compact.reject(&:empty?).flat_map { |path| names(path) }.map { |path| "#{path}/" }
                 .push(OWN_LIBRARY).uniq.freeze
    end

    def own?(path) = !path.nil? && path.start_with?(*own) && !path.start_with?(*foreign)

    def pando?(path) = !path.nil? && path.start_with?(OWN_LIBRARY)

    # @return [String, nil] the gem's name
    def library(path) = own?(path) ? nil : path[%r{/gems/([^/]+)-\d[^/]*/}, 1]

    # Relative to the application's folder, its gem's or one of $LOAD_PATH.
    def short(path)
      folder = own.find { |one| path.start_with?(one) } if own?(path)
      folder ||= path[%r{\A.*/gems/(?=[^/]+-\d[^/]*/)}] || load_folder(path)
      path.delete_prefix(folder.to_s)
    end

    # The argument of require for a loaded file.
    def feature(path)
      folder = load_folder(path)
      (folder ? path.delete_prefix(folder) : short(path)).sub(/\.(?:rb|so)\z/, "")
    end

    def loader?(path) = !path.nil? && LOADERS.match?(path)

    # @return [Array(String, Integer), nil] the line to show: the innermost of the application, if there is one
    def line_of(frames)
      frame = frames.find { |one| own?(one.path) } ||
              frames.find { |one| !loader?(one.path) && !pando?(one.path) }
      frame && [frame.path, frame.lineno]
    end

    private

    def load_folder(path)
      folder = $LOAD_PATH.map(&:to_s).select { |one| path.start_with?("#{one}/") }.max_by(&:size)
      folder && "#{folder}/"
    end

    # A folder may be reached through a link.
    def names(path) = [File.expand_path(path), (File.realpath(path) if File.exist?(path))].compact.uniq

    # Bundler may be loaded where there is no Gemfile.
    def bundle
      ::Bundler.bundle_path.to_s if defined?(::Bundler) && ::Bundler.respond_to?(:bundle_path)
    rescue ::Bundler::BundlerError
      nil
    end
  end
end
