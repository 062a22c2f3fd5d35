# frozen_string_literal: true

require "digest"
require "fileutils"
require "support/packages"
require "support/lab/traffic"
require_relative "../../../apps/solidus/traffic"

module Bench
  module Lab
    module Apps
      # A Solidus shop, a public Rails app: storefront, back office and API. It has its own bundle. The database and the
      # images are made once per version and kept in the user's cache folder. Each run has a copy of the database.
      class Solidus
        CODE = File.join(FOLDER, "solidus")
        GEMFILE = File.expand_path("../../../gems/solidus/Gemfile", __dir__)
        DATABASE = "production.sqlite3"
        VERSIONS = /^ {4}(?:rails|solidus_\w+) \(.*\)$/ # in the lock file

        # @param bundle [Bundle, nil] nil: that of bench/gems/solidus
        def initialize(bundle = nil)
          @bundle = bundle
        end

        def bundle = @bundle ||= Bundle.new("solidus", GEMFILE).prepare

        # @return [String] where the shop's data are kept
        def home = @home ||= File.join(Apps.cache, "solidus-#{digest}")

        # @return [Hash{String => String}] for the server
        def environment(folder)
          FileUtils.cp(File.join(data, DATABASE), folder)
          surroundings(folder, data).merge("LAB_APP" => File.join(CODE, "config.ru"))
        end

        # @param seed [Integer]
        def traffic(seed)
          mix = Bench::Solidus::Traffic
          Traffic.new(mix.targets, writes: mix.writes, share: mix::WRITES, seed: seed)
        end

        # Called once, before any server is started: takes 2 minutes on two cores.
        def prepare(bundle)
          Apps.locked(home) { fill(bundle) unless File.exist?(File.join(data, DATABASE)) }
        end

        private

        def data = File.join(home, "data")

        def digest
          parts = sources.map { |path| File.read(path) } + File.read(lock).scan(VERSIONS)
          Digest::SHA256.hexdigest(parts.join("\0"))[0, 16]
        end

        # The inputs that determine the content of the database.
        def sources = Dir[File.join(CODE, "{config,db}/**/*.{rb,yml}")]
        def lock = "#{bundle.environment.fetch("BUNDLE_GEMFILE")}.lock"

        def surroundings(folder, data)
          { "LAB_FOLDER" => folder, "LAB_FILES" => File.join(data, "files"), "RAILS_ENV" => "production" }
        end

        def fill(bundle)
          warn "filling a shop in #{home} ..."
          Packages.executable("mogrify", "imagemagick") # resizes the images
          fresh = "#{data}.new"
          FileUtils.rm_rf(fresh)
          FileUtils.mkdir_p(fresh)
          output = IO.popen([bundle.environment.merge(surroundings(fresh, fresh)), Gem.ruby,
                             File.join(CODE, "db/prepare.rb")], err: %i[child out], &:read)
          raise Failed, "the shop's database: #{output}" unless Process.last_status.success?

          File.rename(fresh, data)
        end
      end

      add("solidus") { Solidus.new }
    end
  end
end
