# frozen_string_literal: true

require "open3"
require "pando/doctor/lazy_state"
require "support/checkout"

module Support
  # A small application in its own folder, served in a fresh Ruby and observed by Doctor::LazyState.
  module LazyApp
    RUNNER = <<~RUBY
      require ARGV.fetch(0)
      require "pando/doctor/lazy_state"
      how, root = ARGV.fetch(1), File.dirname(ARGV.fetch(0))
      print Pando::Doctor::LazyState.public_send(how, root: root) { |number| serve(number) }.to_json
    RUBY
    # Requests that come from outside.
    SESSION = <<~RUBY
      require ARGV.fetch(0)
      require "pando/doctor/lazy_state"
      state = Pando::Doctor::LazyState
      state.before(root: File.dirname(ARGV.fetch(0)))
      1.upto(4) do |number|
        state.between if number > 1
        serve(number)
      end
      told = state.after
      print state::Result.new(told[:findings], told[:figures]).to_json
    RUBY
    WITHIN = "60" # seconds

    def teardown
      FileUtils.rm_rf(@lazy_folder) if @lazy_folder
      super
    end

    # @param app [String] Ruby code that defines serve(number); its first line is line 1 of app.rb
    # @param files [Hash{String => String}] further files in its folder
    # @return [Pando::Doctor::LazyState::Result]
    def observe(app, how: :observe, **files)
      files.merge("app.rb" => app).each { |name, text| write(name, text) }
      out, err, status = Open3.capture3("timeout", WITHIN, RbConfig.ruby, "-I", Checkout.path("lib"), "-e",
                                        how == :session ? SESSION : RUNNER, path("app.rb"), how.name)
      assert_predicate status, :success?, err
      Pando::Doctor::LazyState::Result.parse(out)
    end

    # @return [String] path of a file in the application's folder
    def path(name) = File.join(lazy_folder, name)

    # @return [Pando::ForkSafety::Finding] the only one
    def only(result)
      assert_equal 1, result.findings.size, result.findings.join("\n")
      result.findings.first
    end

    private

    def lazy_folder = @lazy_folder ||= File.realpath(Dir.mktmpdir("pando-lazy"))

    def write(name, text)
      FileUtils.mkdir_p(File.dirname(path(name)))
      File.write(path(name), text)
    end
  end
end
