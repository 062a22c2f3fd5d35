# frozen_string_literal: true

require "digest"
require "fileutils"
require "support/bundle"

module Bench
  module Lab
    module Apps
      # A public Rails app that has a folder in bench/apps and a bundle in bench/gems. Its db/prepare.rb makes the
      # database and what belongs to it once per version, in the user's cache folder. Each run has a copy of the
      # database. A subclass says what is asked of the app.
      class FilledApp
        DATABASE = "production.sqlite3"

        # @param name [String] of both folders
        # @param gems [Regexp] whose versions determine the content of the database, beside Rails
        # @param bundle [Bundle, nil] nil: that of bench/gems
        def initialize(name, gems, bundle)
          @name = name
          @versions = /^ {4}(?:rails|#{gems}) \(.*\)$/ # in the lock file
          @bundle = bundle
        end

        def bundle = @bundle ||= Bundle.new(@name, File.expand_path("../../gems/#{@name}/Gemfile", __dir__)).prepare

        # @return [String] where the app's data are kept
        def home = @home ||= File.join(Apps.cache, "#{@name}-#{digest}")

        # @return [Hash{String => String}] for the server
        def environment(folder)
          FileUtils.cp(File.join(data, DATABASE), folder)
          surroundings(folder, data).merge("LAB_APP" => File.join(code, "config.ru"))
        end

        # Called once, before any server is started: takes 2 minutes on two cores.
        def prepare(bundle)
          Apps.locked(home) { fill(bundle) unless File.exist?(File.join(data, DATABASE)) }
        end

        private

        def code = File.join(FOLDER, @name)
        def data = File.join(home, "data")
        def lock = "#{bundle.environment.fetch("BUNDLE_GEMFILE")}.lock"

        def digest
          parts = sources.map { |path| File.read(path) } + File.read(lock).scan(@versions)
          Digest::SHA256.hexdigest(parts.join("\0"))[0, 16]
        end

        # The inputs that determine the content of the database.
        def sources = Dir[File.join(code, "{config,db}/**/*.{rb,yml}")]

        def surroundings(folder, data)
          { "LAB_FOLDER" => folder, "LAB_FILES" => File.join(data, "files"), "RAILS_ENV" => "production" }
        end

        def fill(bundle)
          warn "filling the database of #{@name} in #{home} ..."
          fresh = "#{data}.new"
          FileUtils.rm_rf(fresh)
          FileUtils.mkdir_p(fresh)
          output = IO.popen([bundle.environment.merge(surroundings(fresh, fresh)), Gem.ruby,
                             File.join(code, "db/prepare.rb")], err: %i[child out], &:read)
          raise Failed, "the database of #{@name}: #{output}" unless Process.last_status.success?

          File.rename(fresh, data)
        end
      end
    end
  end
end
