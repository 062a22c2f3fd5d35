# frozen_string_literal: true

# A Rails application with one channel, whose broadcasts go through Redis.
#
#   GET /cable       a WebSocket of Action Cable; the channel tells the pid of its process
#   GET /broadcast   broadcasts the parameter `number`
#   GET /            13 bytes, and the pid in X-Worker
require "rails"
require "action_controller/railtie"
require "action_cable/engine"
require "redis"

module News
  class App < Rails::Application
    config.load_defaults(Rails::VERSION::STRING.to_f)
    config.root = __dir__
    config.eager_load = true
    config.secret_key_base = "0" * 64
    config.logger = Logger.new(File::NULL)
    config.hosts = nil
    config.action_cable.disable_request_forgery_protection = true
    config.action_cable.cable = { "adapter" => "redis", "url" => ENV.fetch("BENCH_REDIS") }
  end

  class Channel < ActionCable::Channel::Base
    def subscribed
      stream_from("news")
      transmit({ worker: Process.pid })
    end
  end

  class Controller < ActionController::Base
    before_action { response.set_header("x-worker", Process.pid.to_s) }

    def broadcast
      ActionCable.server.broadcast("news", { number: Integer(params[:number]) })
      index
    end

    def index = render(plain: "Hello, world!")
  end
end

News::App.initialize!
News::App.routes.draw do
  get("broadcast", to: News::Controller.action(:broadcast))
  root(to: News::Controller.action(:index))
end

run(News::App)
