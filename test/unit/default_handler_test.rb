# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# Which server `rackup` and `bin/rails server` start, in a process with a class like Rackup's.
class DefaultHandlerTest < Minitest::Test
  RACKUP = <<~RUBY
    module Rackup
      module Handler
        def self.default = :another
      end
      class Server
        attr_reader :options
        def initialize(options = nil) = @options = options || {}
        def server = Handler.default
      end
    end
  RUBY
  RACK2 = RACKUP.gsub("Rackup", "Rack")
  ASK = 'print [{}, { config: "app.ru" }, { server: "puma" }, { app: 1 }, { builder: "run 1" }]' \
        ".map { |options| SERVER.new(options).server }.join(\" \")"

  def test_pando_is_the_default_for_a_rackup_file_and_not_for_an_app_of_the_caller
    assert_equal "Pando Pando another another another", run_ruby(RACKUP, "require \"pando\"", ASK)
    assert_equal "Pando Pando another another another", run_ruby(RACK2, "require \"pando\"", ASK, server: "Rack::Server")
  end

  # Rails::Server is a subclass, and older than Pando.
  def test_a_subclass
    assert_equal "Pando", run_ruby(RACKUP, "Sub = Class.new(Rackup::Server)", "require \"pando\"",
                                   "print Sub.new(user_supplied_options: []).server")
  end

  def test_a_variable_that_names_another_server
    %w[RACKUP_HANDLER RACK_HANDLER].each do |name|
      assert_equal "another", run_ruby(RACKUP, "require \"pando\"", "print SERVER.new.server", env: { name => "puma" })
    end
  end

  def test_others_that_ask_for_the_default_get_theirs
    assert_equal "another", run_ruby(RACKUP, "require \"pando\"", "print Rackup::Handler.default")
  end

  # Rack 2 loads its class when a command asks for it.
  def test_nothing_is_loaded_in_a_process_that_starts_no_server_through_rack
    assert_equal "", run_ruby("module Rack; autoload :Server, #{__FILE__.inspect}; end", "require \"pando\"",
                              "print $LOADED_FEATURES.grep(/default_handler|rack_handler/).join(\" \")")
  end

  private

  def run_ruby(*code, server: "Rackup::Server", env: {})
    code = [*code.first(1), "SERVER = #{server} if defined?(#{server})", *code.drop(1)].join("\n")
    variables = { "RACKUP_HANDLER" => nil, "RACK_HANDLER" => nil, **env }
    output, status = Open3.capture2e(variables, RbConfig.ruby, "--disable-gems", "-I",
                                     File.expand_path("../../lib", __dir__), "-e", code)
    assert_predicate status, :success?, output
    output
  end
end
