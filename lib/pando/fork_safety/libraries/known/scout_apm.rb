# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "scout_apm" do
  yours note: "A child lacks the thread that sends, and its middleware believes that it runs.",
        advice: "after_worker_fork { ScoutApm::Agent.instance.start_background_worker }",
        source: "https://github.com/scoutapp/scout_apm_ruby/blob/master/lib/scout_apm/server_integrations/unicorn.rb"
end
